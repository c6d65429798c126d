"""An event fired in this process, without a kernel."""

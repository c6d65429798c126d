"""An event fired in a booted kernel, compared with its simulation."""

"""A source tree that is built as a kernel is, in a second: its Makefile plays the kernel's."""

from __future__ import annotations

from pathlib import Path

MAKEFILE = """\
VERSION = 9
PATCHLEVEL = 9
SUBLEVEL = 1

OBJECTS := $(O)/mm/swap.o $(O)/kernel/fork.o

MAKEFLAGS += -rR
.DELETE_ON_ERROR:
.PHONY: tinyconfig olddefconfig prepare bzImage modules

tinyconfig:
	@echo '# CONFIG_MODULES is not set' > $(O)/.config

olddefconfig:
	@grep -v IMPOSSIBLE $(O)/.config > $(O)/.new; mv $(O)/.new $(O)/.config

prepare: $(O)/include/config/kernel.release

$(O)/include/config/kernel.release: $(O)/.config
	@mkdir -p $(@D); echo 9.9.1-mini > $@; touch $(O)/prepared

bzImage: $(O)/vmlinux prepare
	@mkdir -p $(O)/arch/x86/boot; cp $< $(O)/arch/x86/boot/bzImage

modules: $(O)/vmlinux
	@echo kernel/virtio_pci.ko > $(O)/modules.builtin

$(O)/vmlinux: $(OBJECTS)
	@cat $^ > $@

.PHONY: mm/swap.o kernel/fork.o
mm/swap.o kernel/fork.o: %.o: $(O)/%.o

$(O)/%.o: %.c include/linux/mini.h $(O)/.config
	@mkdir -p $(@D)
	@echo "  CC      $*.o"
	@$(CC) -c -Iinclude -o $@ $<
"""

FILES = {
    "Kconfig": 'source "init/Kconfig"\n',
    "init/Kconfig": 'config MODULES\n\tbool "Modules"\n\nconfig IMPOSSIBLE\n\tbool "No"\n\tdepends on A && \\\n\t\tB\n',
    "arch/x86/Makefile": "# nothing\n",
    "scripts/kconfig/merge_config.sh": '#!/bin/bash\n# -m -O OBJECTS CONFIG FRAGMENT\ncat "$5" >> "$4"\n',
    "include/linux/mini.h": "#define MINI 1\n",
    "mm/swap.c": "#include <linux/mini.h>\n\nint swap(void)\n{\n\treturn MINI;\n}\n",
    "kernel/fork.c": "#include <linux/mini.h>\n\nint fork_all(void)\n{\n\treturn MINI + 1;\n}\n",
}

PATCH = """\
From: Somebody
Subject: [PATCH] Swap more

---
 mm/swap.c | 3 ++-
diff --git a/mm/swap.c b/mm/swap.c
--- a/mm/swap.c
+++ b/mm/swap.c
@@ -2,5 +2,6 @@

 int swap(void)
 {
-\treturn MINI;
+\tint more = MINI;
+\treturn more;
 }
--
2.39
"""


def make_tree(folder: Path) -> Path:
    """Write the tree into `folder`, which must not exist, and return it."""
    for name, text in {"Makefile": MAKEFILE, **FILES}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder by path."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}

"""The events of allocations."""

from tracepoint.analysis.needs import Fields, Need

#: Allocations by address, and what frees them: kfree() takes objects of caches too.
OBJECTS = (
    "kmem:kmalloc", "kmem:kmem_cache_alloc", "kmem:kmalloc_node", "kmem:kmem_cache_alloc_node",
)  # fmt: skip
FREES = ("kmem:kfree", "kmem:kmem_cache_free")
PAGE_ALLOC, PAGE_FREE = "kmem:mm_page_alloc", "kmem:mm_page_free"

_OBJECT = Fields(("common_pid", "call_site", "ptr", "bytes_req", "bytes_alloc"))
_PAGES = Fields(("common_pid", "pfn", "order"))

NEEDS = (
    Need({OBJECTS[0]: _OBJECT, OBJECTS[2]: _OBJECT}, "allocations by kmalloc()"),
    Need({OBJECTS[1]: _OBJECT, OBJECTS[3]: _OBJECT}, "allocations from caches"),
    Need({FREES[0]: Fields(("ptr",))}, "what kfree() frees"),
    Need({FREES[1]: Fields(("ptr",))}, "what is freed to caches"),
    Need({PAGE_ALLOC: _PAGES}, "allocations of pages"),
    Need({PAGE_FREE: _PAGES}, "pages that are freed"),
)

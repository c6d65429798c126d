"""The events of swapping and reclaim; those of the first two need a patched kernel."""

from tracepoint.analysis.needs import Fields, Need

SWAP_IN, SWAP_OUT = "kmem:mm_page_swap_in", "kmem:mm_page_swap_out"
WRITE_NAMES = ("vmscan:mm_vmscan_write_folio", "vmscan:mm_vmscan_writepage")
SHRINK = "vmscan:mm_vmscan_lru_shrink_inactive"
ADD, DELETE = (f"filemap:mm_filemap_{what}_page_cache" for what in ("add_to", "delete_from"))
RSS = "kmem:rss_stat"

#: Begin and end of each kind of reclaim.
RECLAIM = {
    "direct": ("vmscan:mm_vmscan_direct_reclaim_begin", "vmscan:mm_vmscan_direct_reclaim_end"),
    "memcg": ("vmscan:mm_vmscan_memcg_reclaim_begin", "vmscan:mm_vmscan_memcg_reclaim_end"),
    "memcg soft limit": (
        "vmscan:mm_vmscan_memcg_softlimit_reclaim_begin",
        "vmscan:mm_vmscan_memcg_softlimit_reclaim_end",
    ),
    "node": ("vmscan:mm_vmscan_node_reclaim_begin", "vmscan:mm_vmscan_node_reclaim_end"),
    "kswapd": ("vmscan:mm_vmscan_kswapd_wake", "vmscan:mm_vmscan_kswapd_sleep"),
}

_BY = ("common_pid",)
_PAGE = Fields((*_BY, "i_ino", "index", "s_dev"), ("order",))
_WRITE = Fields((*_BY, "reclaim_flags"))
_FREED = ("nr_reclaimed",)

NEEDS = (
    Need({SWAP_IN: Fields(_BY, ("entry", "major"))}, "pages that came back, exact major ones"),
    Need({SWAP_OUT: Fields(_BY, ("entry", "nr_pages"))}, "pages that left"),
    Need(dict.fromkeys(WRITE_NAMES, _WRITE), "what reclaim wrote"),
    Need(
        {
            name: Fields(_BY, _FREED if at and kind != "kswapd" else ())
            for kind, names in RECLAIM.items()
            for at, name in enumerate(names)
        },
        "who reclaimed, and how long",
    ),
    Need({SHRINK: Fields(("nr_scanned", "nr_reclaimed"))}, "pages that were scanned and freed"),
    Need({DELETE: _PAGE}, "pages of files that left the page cache"),
    Need({ADD: _PAGE}, "pages of files that came back"),
    Need({RSS: Fields(("mm_id", "member", "size"))}, "size of what is swapped out"),
)

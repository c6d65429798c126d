/* SPDX-License-Identifier: MIT */
/*
 * One class, several events: requests of a block device that share a record.
 *
 * A class costs its code and its format once; each further event only a few hundred bytes.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM example_block
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE block_class

#if !defined(_TRACE_BLOCK_CLASS_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_BLOCK_CLASS_H

#include <linux/blkdev.h>
#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(example_request,

	TP_PROTO(struct request *rq),

	TP_ARGS(rq),

	TP_STRUCT__entry(
		__field(	sector_t,	sector			)
		__field(	dev_t,		dev			)
		__field(	unsigned int,	bytes			)
		__string(	disk,		rq->q->disk->disk_name	)
	),

	TP_fast_assign(
		__entry->sector	= blk_rq_pos(rq);
		__entry->dev	= rq->q->disk ? disk_devt(rq->q->disk) : 0;
		__entry->bytes	= blk_rq_bytes(rq);
		__assign_str(disk, rq->q->disk->disk_name);
	),

	TP_printk("%d,%d %s sector=%llu bytes=%u",
		MAJOR(__entry->dev),
		MINOR(__entry->dev),
		__get_str(disk),
		(unsigned long long)__entry->sector,
		__entry->bytes)
);

DEFINE_EVENT(example_request, request_queued,

	TP_PROTO(struct request *rq),

	TP_ARGS(rq)
);

DEFINE_EVENT(example_request, request_issued,

	TP_PROTO(struct request *rq),

	TP_ARGS(rq)
);

/* The same record, shown in another way, and only for requests that carry data. */
DEFINE_EVENT_PRINT(example_request, request_done,

	TP_PROTO(struct request *rq),

	TP_ARGS(rq),

	TP_printk("%s done: %u bytes at %llu",
		__get_str(disk),
		__entry->bytes,
		(unsigned long long)__entry->sector)
);

DEFINE_EVENT_CONDITION(example_request, request_merged,

	TP_PROTO(struct request *rq),

	TP_ARGS(rq),

	TP_CONDITION(blk_rq_bytes(rq) > 0)
);

#endif /* _TRACE_BLOCK_CLASS_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#include <trace/define_trace.h>

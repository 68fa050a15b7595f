/*-------------------------------------------------------------------------
 *
 * other.c
 *	  Another module with a resource manager of its own, by the ID that
 *	  "other.id" says, for test/t/rmgr_id.pl; and, where servers keep some of modules, with
 *	  cumulative statistics by that of "other.statistics_id", if it is not 0, for test/t/counters.pl.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog_internal.h"
#include "access/xlogreader.h"
#include "fmgr.h"
#include "utils/guc.h"
#if __has_include("utils/pgstat_kind.h")
#include "utils/pgstat_internal.h"
#endif

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

static int	id;

#ifdef PGSTAT_KIND_CUSTOM_MIN
static int	statistics_id;

static void
nothing_at(void *stats)
{
}

static void
nothing_by(TimestampTz now)
{
}

static void
nothing(void)
{
}

static const PgStat_KindInfo kind = {
	.name = "other",
	.fixed_amount = true,
	.shared_size = sizeof(int),
	.shared_data_len = sizeof(int),
	.init_shmem_cb = nothing_at,
	.reset_all_cb = nothing_by,
	.snapshot_cb = nothing
};
#endif

static void
other_redo(XLogReaderState *record)
{
}

static void
other_desc(StringInfo buf, XLogReaderState *record)
{
}

static const char *
other_identify(uint8 info)
{
	return NULL;
}

static RmgrData other = {
	.rm_name = "other",
	.rm_redo = other_redo,
	.rm_desc = other_desc,
	.rm_identify = other_identify
};

void
_PG_init(void)
{
	DefineCustomIntVariable("other.id", "ID of its resource manager.", NULL, &id,
							128, 128, 255, PGC_POSTMASTER, 0, NULL, NULL, NULL);
	RegisterCustomRmgr((RmgrId) id, &other);
#ifdef PGSTAT_KIND_CUSTOM_MIN
	DefineCustomIntVariable("other.statistics_id", "ID of its cumulative statistics.", NULL, &statistics_id,
							0, 0, PGSTAT_KIND_CUSTOM_MAX, PGC_POSTMASTER, 0, NULL, NULL, NULL);
	if (statistics_id != 0)
		pgstat_register_kind(statistics_id, &kind);
#endif
}

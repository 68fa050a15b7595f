/*-------------------------------------------------------------------------
 *
 * other.c
 *	  Another module with a resource manager of its own, by the ID that
 *	  "other.id" says: for test/t/rmgr_id.pl.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog_internal.h"
#include "access/xlogreader.h"
#include "fmgr.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

static int	id;

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
}

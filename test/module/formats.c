/*-------------------------------------------------------------------------
 *
 * formats.c
 *	  What another version would have written, for tests.
 *
 * The extension's script declares none of these; sql/definition_formats.sql and
 * test/t/formats.pl do.
 *
 *	mot_test_definition(bytes)	what a table's definition says
 *	mot_test_log(info, bytes)	a record of the log is written, and flushed; returns where
 *								it ends.  In builds for the server tests only
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xloginsert.h"
#include "fmgr.h"
#include "relation/definition.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "wal/log/record.h"

PG_FUNCTION_INFO_V1(mot_test_definition);

Datum
mot_test_definition(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_P(0);
	MotDefinition *def = MotDefinitionDecode(VARDATA(bytes), VARSIZE(bytes) - VARHDRSZ, CurrentMemoryContext);
	StringInfoData text;

	initStringInfo(&text);
	appendStringInfo(&text, "%s, %u/%u, owner %u%s, conditions %d, identity %d", def->name, def->dbid, def->relid,
					 def->owner, def->numbered ? ", numbered" : "", def->nconditions, def->identity);
	for (int i = 0; i < def->desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(def->desc, i);

		appendStringInfo(&text, "; column %u(%d) %d%c%s%s%s", att->atttypid, att->atttypmod, att->attlen, att->attalign,
						 att->attisdropped ? " dropped" : "", att->attnotnull ? " not null" : "",
						 att->atthasmissing ? " missing" : "");
	}
	for (int i = 0; i < def->nindexes; i++)
	{
		const MotKey *key = def->indexes[i].key;

		appendStringInfo(&text, "; index %u%s", def->indexes[i].indexoid, def->indexes[i].unique ? " unique" : "");
		for (int j = 0; j < key->ncolumns; j++)
			appendStringInfo(&text, " %d%s", key->columns[j].attnum, key->columns[j].descending ? " desc" : "");
	}
	PG_RETURN_TEXT_P(cstring_to_text(text.data));
}

#ifdef MOT_FAULTS

PG_FUNCTION_INFO_V1(mot_test_log);

Datum
mot_test_log(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(1);
	XLogRecPtr	end;

	XLogBeginInsert();
	XLogRegisterData(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
	end = XLogInsert((RmgrId) mot_resource_manager_id, (uint8) PG_GETARG_INT32(0));
	XLogFlush(end);
	PG_RETURN_LSN(end);
}

#endif

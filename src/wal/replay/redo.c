/*-------------------------------------------------------------------------
 *
 * redo.c
 *	  Operations of redo and the tables they are about: what those who apply
 *	  them have in common.
 *
 * A transaction of its own for each of the log's (apply.c), or rows changed
 * where they are, of a table that nobody else knows of (advance.c): in both a
 * row is found by its key or its content, a new one is put together of the old
 * one's bytes, and a definition replaces the one before.
 *
 * Something that does not fit (a row that is not there, a key that is there
 * twice, a table that nobody has heard of) means that what was loaded and the
 * log do not belong together.  That is reported, naming the position and the
 * table, and our tables are refused; unless mot.ignore_damaged says that such a table
 * is to be given up, and the others to be served.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "compat/attribute.h"
#include "relation/rowcodec.h"
#include "utils/memutils.h"
#include "wal/checkpoint/checkpoint.h"
#include "wal/replay/apply.h"
#include "wal/replay/replay.h"

/* operations between two looks for an interrupt */
#define BATCH 1024

/* All operations, one after the other; "look" every now and then. */
void
MotRedoEach(MotRedo *redo, const char *ops, size_t len,
			void (*one) (MotRedo *redo, const MotOpData *op, const char *raw, size_t len),
			void (*look) (MotRedo *redo))
{
	MemoryContext oldcxt = MemoryContextSwitchTo(redo->row_cxt);
	const char *p = ops;
	const char *raw = ops;
	const char *error = NULL;
	MotOpData	op;

	for (; MotRecordNext(&p, ops + len, &op, &error); raw = p)
	{
		one(redo, &op, raw, p - raw);
		MemoryContextReset(redo->row_cxt);
		if (++redo->operations % BATCH == 0)
			look(redo);
	}
	if (error != NULL)
		MotRedoRaiseDamaged(redo->lsn, "%s", error);
	MemoryContextSwitchTo(oldcxt);
}

/* --------------------------------------------------------------- failures */

void
MotRedoRaiseDamaged(XLogRecPtr lsn, const char *fmt,...)
{
	char		why[256];
	va_list		args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("redo of memory-optimized tables at %X/%X is damaged: %s", LSN_FORMAT_ARGS(lsn), why),
			 errhint("Restore the server from a backup; mot.ignore_damaged starts it without the tables.")));
}

void
MotApplyRaiseMemory(mot_status status, XLogRecPtr lsn, const char *table)
{
	if (status == MOT_NO_PRIVATE_MEMORY)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Redo of memory-optimized tables at %X/%X could not be applied.",
						   LSN_FORMAT_ARGS(lsn))));
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("memory for memory-optimized tables is full"),
			 XLogRecPtrIsInvalid(lsn) ?
			 errdetail("A transaction of the log could not be applied.") :
			 table == NULL ?
			 errdetail("Redo at %X/%X could not be applied.", LSN_FORMAT_ARGS(lsn)) :
			 errdetail("Redo at %X/%X for table \"%s\" could not be applied.",
					   LSN_FORMAT_ARGS(lsn), table),
			 errhint("Increase mot.max_memory, on a standby to at least what the primary has, and start the server again.")));
}

/* (A string whose sort key is too long raises it by itself.) */
bool
MotRedoClashes(MotRedo *redo)
{
	if (geterrcode() == ERRCODE_PROGRAM_LIMIT_EXCEEDED && redo->target != NULL && MotTargetGivesWay(redo->target, false))
		redo->clash = true;
	return redo->clash;
}

/*
 * The table of the current operation and the log do not fit together; returns false, where it does.
 */
bool
MotRedoMisfit(MotRedo *redo, const char *fmt,...)
{
	MotTarget  *target = redo->target;
	char		why[256];
	va_list		args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);

	if (!redo->gives_up)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("redo at %X/%X does not fit memory-optimized table \"%s\": %s",
						LSN_FORMAT_ARGS(redo->lsn), MotTargetName(target), why),
				 errdetail("The table has number %u in database %u.", target->key.relid, target->key.dbid),
				 errhint("Restore the server from a backup, or set mot.ignore_damaged = on to start it without this table.")));

	ereport(WARNING,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("redo at %X/%X does not fit memory-optimized table \"%s\": %s",
					LSN_FORMAT_ARGS(redo->lsn), MotTargetName(target), why),
			 errdetail("The table is given up, as mot.ignore_damaged asks for.")));
	/* (its rows as they were before) */
	MotStatePreserveNewest();
	target->damaged = true;
	MotStateDamage(target->key.dbid, target->key.relid,
				   psprintf("redo at %X/%X does not fit: %s", LSN_FORMAT_ARGS(redo->lsn), why));
	return false;
}

/* Did the engine do it?  Otherwise there is an error, or the table is damaged. */
bool
MotRedoCheck(MotRedo *redo, mot_status status)
{
	switch (status)
	{
		case MOT_OK:
			return true;
		case MOT_NO_MEMORY:
			redo->full = true;
			/* FALLTHROUGH */
		case MOT_NO_PRIVATE_MEMORY:
			MotApplyRaiseMemory(status, redo->lsn, MotTargetName(redo->target));
			break;
		case MOT_TABLE_FULL:
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("memory-optimized table \"%s\" is full", MotTargetName(redo->target)),
					 errdetail("Redo at %X/%X could not be applied.", LSN_FORMAT_ARGS(redo->lsn))));
			break;
		case MOT_DUPLICATE:

			/*
			 * by its collation, as it is today: it is to be had with plain
			 * keys
			 */
			if (MotTargetGivesWay(redo->target, true))
			{
				redo->clash = true;
				ereport(ERROR,
						(errcode(ERRCODE_DATA_CORRUPTED),
						 errmsg("redo at %X/%X of memory-optimized table \"%s\" has a key that is there already by its collation",
								LSN_FORMAT_ARGS(redo->lsn), MotTargetName(redo->target)),
						 errhint("Another version of the collation's library may take strings for equal that were not when they were stored: start the server with that version.")));
			}
			return MotRedoMisfit(redo, "a key is there already");
		case MOT_DELETED:
		case MOT_NOT_FOUND:
			return MotRedoMisfit(redo, "a row is not there");
		default:
			return MotRedoMisfit(redo, "%s", mot_status_name(status));
	}
	return false;				/* not reached */
}

/* ------------------------------------------------------------------- rows */

/* Do the values that a row is to have lie within its bytes, as far as they go? */
bool
MotRedoIsWhole(const MotTarget *target, unsigned host_bits, const char *row, size_t len)
{
	TupleDesc	desc = target->def->desc;
	int			stored = host_bits & MOT_ROW_NATTS_MASK;
	bool		has_nulls = (host_bits & MOT_ROW_HAS_NULLS) != 0;
	size_t		at = has_nulls ? MAXALIGN(BITMAPLEN(stored)) : 0;
	const char *base = row + at;
	size_t		off = 0;

	if (stored > desc->natts || at > len)
		return false;
	len -= at;
	for (int i = 0; i < stored; i++)
	{
		MotAttribute *att = MotDescAttribute(desc, i);
		size_t		size = att->attlen;

		if (has_nulls && att_isnull(i, (const uint8 *) row))
			continue;
		/* (its first byte says how it is aligned) */
		if (off >= len)
			return false;
		off = MotAttributeAlignAt(off, att, base + off);
		if (off >= len)
			return false;
		if (att->attlen == -1)
		{
			if (VARATT_IS_1B_E(base + off) || (!VARATT_IS_1B(base + off) && len - off < VARHDRSZ))
				return false;
			size = VARSIZE_ANY(base + off);
			if (size < (VARATT_IS_1B(base + off) ? VARHDRSZ_SHORT : VARHDRSZ))
				return false;
		}
		else if (att->attlen == -2)
			size = strnlen(base + off, len - off) + 1;
		if (size > len - off)
			return false;
		off += size;
	}
	if ((host_bits & MOT_ROW_HAS_TAIL) != 0)
	{
		const MotTail *tail = (const MotTail *) (base + MAXALIGN(off));
		const MotTailEntry *entry = NULL;

		if (MAXALIGN(off) + sizeof(MotTail) > len || tail->size > len - MAXALIGN(off))
			return false;
		while ((entry = MotTailNext(tail, entry)) != NULL)
			if (entry->key + entry->len > (const uint8 *) tail + tail->size)
				return false;
	}
	return true;
}

bool
MotRedoCheckRow(MotRedo *redo, unsigned host_bits, const void *row, size_t len)
{
	return likely(MotRedoIsWhole(redo->target, host_bits, row, len)) || MotRedoMisfit(redo, "a row is not whole");
}

/*
 * The row that an operation is about; NULL: it has been done.  false: damage, reported (so below).
 */
bool
MotRedoFind(MotRedo *redo, const MotOpData *op, mot_row **row, const mot_version **version)
{
	MotTarget  *target = redo->target;
	int			identity = target->def->identity;
	const void *key = op->key;
	size_t		len = op->key_len;

	redo->amended = false;
	if (op->key == NULL)
	{
		if (!MotRedoCheckRow(redo, op->old_host_bits, op->old_bytes, op->old_len))
			return false;
		MotContentPrepare(redo->session, target);
		return MotContentFind(redo->session, &redo->view, target, op, row, version, &redo->amended) ||
			MotRedoMisfit(redo, "a row is not there");
	}
	if (identity < 0 || target->indexes[identity].handle.index == NULL)
		return MotRedoMisfit(redo, "the index by which rows are told apart is not there");
	if (target->def->indexes[identity].key->collated)
	{
		if (!MotKeyFromPlain(target->def->indexes[identity].key, (const uint8 *) op->key, op->key_len, &target->old_key))
			return MotRedoMisfit(redo, "a row's name is no key");
		key = target->old_key.data;
		len = target->old_key.len;
	}
	return MotRedoCheck(redo, mot_index_get(redo->session, &redo->view, &target->indexes[identity].handle,
											key, len, row, version));
}

/* A row that nobody sees yet, and its keys. */
bool
MotRedoLoad(MotRedo *redo, unsigned host_bits, const void *bytes, size_t len)
{
	MotTarget  *target = redo->target;
	mot_row    *row;
	mot_row    *other;
	void	   *data;

	if (!MotRedoCheckRow(redo, host_bits, bytes, len) ||
		!MotRedoCheck(redo, mot_load_row(redo->session, target->table, host_bits, len, &row, &data)))
		return false;
	memcpy(data, bytes, len);
	if (target->nindexes > 0)
		MotTargetDeform(target, host_bits, data, target->new_values, target->new_isnull);
	for (int i = 0; i < target->nindexes; i++)
	{
		unsigned	flags;

		if (target->indexes[i].handle.index == NULL)
			continue;
		flags = MotTargetNewKey(target, i);
		if (!MotRedoCheck(redo, mot_load_key(redo->session, &target->indexes[i].handle, row,
											 target->new_key.data, target->new_key.len, flags, &other)))
			return false;
	}
	MotContentAdd(redo->session, target, row, host_bits, data, len);
	return true;
}

/*
 * The new row's bytes, of the old one's, in redo->row; both are taken apart if there are indexes.
 */
bool
MotRedoPatch(MotRedo *redo, const MotOpData *op, unsigned old_host_bits, const void *old_bytes, size_t old_size)
{
	MotTarget  *target = redo->target;

	if (op->new_len > redo->row_size)
	{
		if (redo->row != NULL)
			pfree(redo->row);
		redo->row_size = Max(2 * redo->row_size, MAXALIGN(op->new_len));
		redo->row = MemoryContextAllocHuge(redo->cxt, redo->row_size);
	}
	if (!(redo->amended ? MotRecordPatch(op, op->old_bytes, op->old_len, redo->row) :
		  MotRecordPatch(op, old_bytes, old_size, redo->row)))
		return MotRedoMisfit(redo, "a changed row does not go together with the row that is there");
	if (!MotRedoCheckRow(redo, op->host_bits, redo->row, op->new_len))
		return false;
	if (target->nindexes > 0)
	{
		MotTargetDeform(target, old_host_bits, old_bytes, target->old_values, target->old_isnull);
		MotTargetDeform(target, op->host_bits, redo->row, target->new_values, target->new_isnull);
	}
	return true;
}

/* ------------------------------------------------------------- definitions */

/* A new table, which nobody knows of. */
bool
MotRedoCreate(MotRedo *redo, const MotOpData *op)
{
	MotTarget  *target = redo->target;
	mot_table  *table;

	MotTargetDefine(target, op->bytes, op->len);
	if (!MotRedoCheck(redo, MotDefinitionMakeTable(redo->session, target->def, target->bytes, target->len, &table)))
		return false;
	target->table = table;
	MotTargetResolve(target);
	return true;
}

/*
 * Rows that follow are of the new definition; but its new indexes are built by
 * operations of their own.  So is an index whose keys look otherwise now, as
 * when a column has become NOT NULL: its number is the same.  Returns the
 * definition that was.
 */
MotDefinition *
MotRedoDefine(MotRedo *redo, const MotOpData *op)
{
	MotTarget  *target = redo->target;
	size_t		len;
	const void *bytes = mot_table_definition(target->table, &len);
	MotDefinition *old = MotDefinitionDecode(bytes, len, redo->row_cxt);

	MotTargetDefine(target, op->bytes, op->len);
	for (int i = 0; i < target->nindexes; i++)
	{
		const MotIndex *index = &target->indexes[i];
		bool		same = true;

		for (int j = 0; j < old->nindexes; j++)
			if (old->indexes[j].indexoid == index->indexoid)
				same = MotDefinitionSameIndex(&old->indexes[j], index, true);
		MotTargetResolveIndex(target, i, same ? mot_table_index(target->table, index->indexoid) : NULL);
	}
	return old;
}

/*-------------------------------------------------------------------------
 *
 * send.c
 *	  Rows to the client.
 *
 * The server's receiver for clients looks up each column's output function for
 * every execution, and makes and drops memory for it; for a single row that is
 * most of what it does.  A statement of ours knows its columns as long as it
 * lives.  So the messages are made here, byte for byte as printtup.c makes
 * them, where the rows go straight to a client (to whom the receiver describes them before, if
 * he has sent a simple query) and all columns are of
 * types that the server comes with and that are no arrays, rows, domains or
 * the like: what these need to know may change while the statement lives.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "compat/calls.h"
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "statement/statement.h"
#include "tcop/dest.h"
#include "tcop/pquery.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/syscache.h"

#define KEEP_BUFFER (64 * 1024) /* one that has grown beyond this is let go of */

typedef enum ColumnKind
{
	INTEGER_2,
	INTEGER_4,
	INTEGER_8,
	STRING,						/* text and its like, which are sent as they
								 * are */
	TEXT,						/* by its output function */
	BINARY						/* by its send function */
} ColumnKind;

typedef struct Column
{
	int16		format;			/* that "kind" and "function" are for; -1:
								 * none yet */
	ColumnKind	kind;
	FmgrInfo	function;
} Column;

struct MotSender
{
	int			natts;
	TupleDesc	desc;
	MemoryContext cxt;			/* of functions */
	Column		columns[FLEXIBLE_ARRAY_MEMBER];
};

static StringInfoData message;
static MemoryContext row_cxt = NULL;	/* what output functions return */
static bool (*client_receives) (TupleTableSlot *slot, DestReceiver *self) = NULL;

/* In the program's memory.  NULL: the rows are left to the server's receiver. */
MotSender *
MotSenderMake(TupleDesc desc)
{
	MotSender  *sender;

	for (int i = 0; i < desc->natts; i++)
		if (TupleDescAttr(desc, i)->attisdropped || !MotTypeIsPlain(TupleDescAttr(desc, i)->atttypid))
			return NULL;
	if (client_receives == NULL)
	{
		DestReceiver *dest = CreateDestReceiver(DestRemoteExecute);

		client_receives = dest->receiveSlot;
		dest->rDestroy(dest);
		row_cxt = AllocSetContextCreate(TopMemoryContext, "MOT rows sent", ALLOCSET_SMALL_SIZES);
	}
	sender = palloc(offsetof(MotSender, columns) + desc->natts * sizeof(Column));
	sender->natts = desc->natts;
	sender->desc = desc;
	sender->cxt = CurrentMemoryContext;
	for (int i = 0; i < desc->natts; i++)
		sender->columns[i].format = -1;
	return sender;
}

/* One that the server comes with, and no array, row, domain or the like. */
bool
MotTypeIsPlain(Oid type)
{
	HeapTuple	tuple;
	Form_pg_type form;
	bool		known;

	if (type >= FirstGenbkiObjectId)
		return false;
	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_type) GETSTRUCT(tuple);
	known = form->typtype == TYPTYPE_BASE && !OidIsValid(form->typelem) &&
		OidIsValid(form->typoutput) && OidIsValid(form->typsend) && form->typisdefined;
	ReleaseSysCache(tuple);
	return known;
}

static void
choose(MotSender *sender, Column *column, Oid type, int16 format)
{
	Oid			function;
	bool		varlena;

	column->format = -1;
	if (format == 0)
		getTypeOutputInfo(type, &function, &varlena);
	else
		getTypeBinaryOutputInfo(type, &function, &varlena);
	fmgr_info_cxt(function, &column->function, sender->cxt);
	switch (type)
	{
		case INT2OID:
			column->kind = INTEGER_2;
			break;
		case INT4OID:
			column->kind = INTEGER_4;
			break;
		case INT8OID:
			column->kind = INTEGER_8;
			break;
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
			column->kind = STRING;
			break;
		default:
			column->kind = format == 0 ? TEXT : BINARY;
	}
	column->format = format;
}

/* Do the rows of this execution, which is to begin, go to the client by us? */
bool
MotSenderBegins(MotSender *sender, QueryDesc *query)
{
	DestReceiver *dest = query->dest;
	Portal		portal = ActivePortal;

	if ((dest->mydest != DestRemoteExecute && dest->mydest != DestRemote) || dest->receiveSlot != client_receives ||
		portal == NULL || portal->queryDesc != query)
		return false;
	return MotSenderFormats(sender, portal->formats, portal->formats != NULL ? sender->natts : 0);
}

/*
 * Can it send its columns so?  "n" is that of the formats, as in a Bind message: none (text), one for all
 * columns, or one each.
 */
bool
MotSenderFormats(MotSender *sender, const int16 *formats, int n)
{
	if (n > 1 && n != sender->natts)
		return false;			/* an error that the server knows */
	for (int i = 0; i < sender->natts; i++)
	{
		int16		format = n == 0 ? 0 : formats[n == 1 ? 0 : i];

		if (likely(sender->columns[i].format == format))
			continue;
		if (format != 0 && format != 1)
			return false;		/* an error that the server knows */
		choose(sender, &sender->columns[i], TupleDescAttr(sender->desc, i)->atttypid, format);
	}
	if (unlikely(message.data == NULL))
		MotWithin(TopMemoryContext, initStringInfo(&message));
	return true;
}

/* an integer as text of a known longest length */
static inline void
put_integer(int64 value, int longest, bool wide)
{
	char	   *at;
	int			len;
	uint32		n;

	enlargeStringInfo(&message, sizeof(uint32) + longest + 1);
	at = message.data + message.len;
	len = wide ? pg_lltoa(value, at + sizeof(uint32)) : pg_ltoa((int32) value, at + sizeof(uint32));
	n = pg_hton32((uint32) len);
	memcpy(at, &n, sizeof(uint32));
	message.len += sizeof(uint32) + len;
}

static void
put_column(const Column *column, Datum value)
{
	switch (column->kind)
	{
		case INTEGER_2:
			if (column->format == 0)
				put_integer(DatumGetInt16(value), 11, false);
			else
			{
				pq_sendint32(&message, sizeof(int16));
				pq_sendint16(&message, DatumGetInt16(value));
			}
			break;
		case INTEGER_4:
			if (column->format == 0)
				put_integer(DatumGetInt32(value), 11, false);
			else
			{
				pq_sendint32(&message, sizeof(int32));
				pq_sendint32(&message, DatumGetInt32(value));
			}
			break;
		case INTEGER_8:
			if (column->format == 0)
				put_integer(DatumGetInt64(value), MAXINT8LEN, true);
			else
			{
				pq_sendint32(&message, sizeof(int64));
				pq_sendint64(&message, DatumGetInt64(value));
			}
			break;
		case STRING:
			{
				text	   *t = DatumGetTextPP(value);

				MotSendCountedText(&message, VARDATA_ANY(t), VARSIZE_ANY_EXHDR(t));
				break;
			}
		case TEXT:
			{
				char	   *s = OutputFunctionCall(unconstify(FmgrInfo *, &column->function), value);

				MotSendCountedText(&message, s, strlen(s));
				break;
			}
		case BINARY:
			{
				bytea	   *b = SendFunctionCall(unconstify(FmgrInfo *, &column->function), value);

				pq_sendint32(&message, VARSIZE(b) - VARHDRSZ);
				pq_sendbytes(&message, VARDATA(b), VARSIZE(b) - VARHDRSZ);
				break;
			}
	}
}

void
MotSenderRow(MotSender *sender, TupleTableSlot *slot)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(row_cxt);

	slot_getallattrs(slot);
	Assert(slot->tts_tupleDescriptor->natts == sender->natts);
	pq_beginmessage_reuse(&message, 'D');
	pq_sendint16(&message, sender->natts);
	for (int i = 0; i < sender->natts; i++)
	{
		if (slot->tts_isnull[i])
			pq_sendint32(&message, -1);
		else
			put_column(&sender->columns[i], slot->tts_values[i]);
	}
	pq_endmessage_reuse(&message);
	MemoryContextSwitchTo(oldcxt);
	MotContextReset(row_cxt);
}

void
MotSenderEnds(void)
{
	if (unlikely(message.maxlen > KEEP_BUFFER))
	{
		pfree(message.data);
		message.data = NULL;
		message.maxlen = 0;
	}
}

/* An error ended an execution, perhaps in the middle of a row. */
void
MotSenderFails(void)
{
	if (row_cxt != NULL)
		MemoryContextReset(row_cxt);
	MotSenderEnds();
}

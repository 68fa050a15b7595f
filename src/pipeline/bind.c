/*-------------------------------------------------------------------------
 *
 * bind.c
 *	  A Bind message: which statement, what parameters.
 *
 * As exec_bind_message() reads it, with its errors.  What the server looks up of a parameter's type for
 * each value is looked up once for each statement, if the type is one of its own.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/prepare.h"
#include "compat/calls.h"
#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "mb/stringinfo_mb.h"
#include "nodes/params.h"
#include "port/pg_bswap.h"
#include "pipeline/pipeline.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* for errors */
typedef struct Reading
{
	const char *portal;
	int			param;			/* from 0 */
	const char *value;			/* or NULL */
} Reading;

static HTAB *piped = NULL;

/* ------------------------------------------------------------- statements */

/* The statement goes. */
static void
forget(void *arg)
{
	CachedPlanSource *source = arg;

	hash_search(piped, &source, HASH_REMOVE, NULL);
}

static MotPiped *
piped_of(CachedPlanSource *source)
{
	MotPiped   *entry;
	MotPiped	made = {.source = source};
	MemoryContextCallback *callback;

	if (piped == NULL)
		piped = MotHashCreate("MOT pipelines", 16, sizeof(CachedPlanSource *), sizeof(MotPiped), TopMemoryContext);
	entry = hash_search(piped, &source, HASH_FIND, NULL);
	if (likely(entry != NULL))
		return entry;

	made.cxt = made.known.cxt = AllocSetContextCreate(source->context, "MOT pipeline", ALLOCSET_SMALL_SIZES);
	made.plain = true;
	if (source->num_params > 0)
	{
		made.inputs = MemoryContextAllocZero(made.cxt, source->num_params * sizeof(MotInput));
		MotWithin(made.cxt, made.params = makeParamList(source->num_params));
		for (int i = 0; i < source->num_params; i++)
		{
			made.inputs[i].format = -1;
			made.inputs[i].plain = MotTypeIsPlain(source->param_types[i]);
			made.plain &= made.inputs[i].plain;
		}
	}
	callback = MemoryContextAllocZero(made.cxt, sizeof(MemoryContextCallback));
	callback->func = forget;
	callback->arg = source;
	entry = hash_search(piped, &source, HASH_ENTER, NULL);
	*entry = made;
	MemoryContextRegisterResetCallback(made.cxt, callback);
	return entry;
}

/* The statement of that name.  Errors: there is none. */
void
MotBindStatement(MotBind *bind, const char *name)
{
	if (name[0] != '\0')
	{
		PreparedStatement *prepared = FetchPreparedStatement(name, true);

		bind->statement = prepared->stmt_name;
		bind->source = prepared->plansource;
	}
	else
	{
		bind->statement = "";
		bind->source = MotUnnamed();
		if (bind->source == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_PSTATEMENT),
					 errmsg("unnamed prepared statement does not exist")));
	}
}

/*
 * Both names.  The last statement is not looked up again: nothing that runs here takes one away.  (Letters
 * of ASCII are the same to all clients.)
 */
void
MotBindNames(StringInfo message, MotBind *bind)
{
	const char *name;

	if (likely(message->cursor < message->len && message->data[message->cursor] == '\0'))
	{
		message->cursor++;
		bind->portal = "";
	}
	else
		bind->portal = pq_getmsgstring(message);
	name = message->data + message->cursor;
	if (likely(bind->source != NULL && bind->ascii && strcmp(name, bind->statement) == 0 &&
			   message->cursor + strlen(bind->statement) < message->len))
		message->cursor += strlen(bind->statement) + 1;
	else
	{
		MotBindStatement(bind, pq_getmsgstring(message));
		bind->ascii = true;
		for (name = bind->statement; *name != '\0'; name++)
			bind->ascii &= !IS_HIGHBIT_SET(*name);
	}
}

/* ------------------------------------------------------------- parameters */

/* as bind_param_error_callback() */
static void
say_parameter(void *arg)
{
	const Reading *reading = arg;
	StringInfoData quoted = {0};

	if (reading->value != NULL)
	{
		initStringInfo(&quoted);
		appendStringInfoString(&quoted, " = ");
		appendStringInfoStringQuoted(&quoted, reading->value, log_parameter_max_length_on_error);
	}
	if (reading->portal[0] != '\0')
		errcontext("portal \"%s\" parameter $%d%s", reading->portal, reading->param + 1, quoted.data ? quoted.data : "");
	else
		errcontext("unnamed portal parameter $%d%s", reading->param + 1, quoted.data ? quoted.data : "");
}

/* pq_getmsgint(), of what nearly always is there */
static inline int
get_int16(StringInfo message)
{
	uint16		n;

	if (unlikely(message->len - message->cursor < (int) sizeof(n)))
		return pq_getmsgint(message, sizeof(n));
	memcpy(&n, message->data + message->cursor, sizeof(n));
	message->cursor += sizeof(n);
	return pg_ntoh16(n);
}

static inline int
get_int32(StringInfo message)
{
	uint32		n;

	if (unlikely(message->len - message->cursor < (int) sizeof(n)))
		return pq_getmsgint(message, sizeof(n));
	memcpy(&n, message->data + message->cursor, sizeof(n));
	message->cursor += sizeof(n);
	return pg_ntoh32(n);
}

static void
find_input(MotInput *input, Oid type, int16 format, MemoryContext cxt)
{
	Oid			function;

	input->format = -1;
	if (format == 0)
		getTypeInputInfo(type, &function, &input->io_type);
	else
		getTypeBinaryInputInfo(type, &function, &input->io_type);
	fmgr_info_cxt(function, &input->function, cxt);
	if (input->plain)
		input->format = format;
}

static Datum
read_text(MotInput *input, StringInfo value, Reading *reading)
{
	char	   *string = value->data == NULL ? NULL : pg_client_to_server(value->data, value->len);
	Datum		datum;

	reading->value = string;
	datum = InputFunctionCall(&input->function, string, input->io_type, -1);
	reading->value = NULL;
	return datum;
}

static Datum
read_binary(MotInput *input, StringInfo value, int param)
{
	bool		isnull = value->data == NULL;
	Datum		datum = ReceiveFunctionCall(&input->function, isnull ? NULL : value, input->io_type, -1);

	if (!isnull && value->cursor != value->len)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("incorrect binary data format in bind parameter %d", param + 1)));
	return datum;
}

/* One value, read in CurrentMemoryContext. */
static void
read_value(StringInfo message, MotPiped *entry, int16 format, Reading *reading)
{
	int			i = reading->param;
	MotInput   *input = &entry->inputs[i];
	Oid			type = entry->source->param_types[i];
	ParamExternData *param = &entry->params->params[i];
	int			length = get_int32(message);
	StringInfoData value = {0};
	char		after = 0;

	param->isnull = length == -1;
	if (!param->isnull)
	{
		/*
		 * (the convention of strings, for a moment: the message goes on after
		 * it)
		 */
		value.data = unconstify(char *, pq_getmsgbytes(message, length));
		value.len = length;
		value.maxlen = length + 1;
		after = value.data[length];
		value.data[length] = '\0';
	}
	if (format != 0 && format != 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unsupported format code: %d", format)));
	if (unlikely(input->format != format))
		find_input(input, type, format, input->plain ? entry->cxt : CurrentMemoryContext);
	param->value = format == 0 ? read_text(input, &value, reading) : read_binary(input, &value, i);
	if (!param->isnull)
		value.data[length] = after;
	param->pflags = PARAM_FLAG_CONST;
	param->ptype = type;
}

static int16 *
read_formats(StringInfo message, int *n)
{
	int16	   *formats = NULL;

	*n = get_int16(message);
	if (*n > 0)
		formats = palloc(*n * sizeof(int16));
	for (int i = 0; i < *n; i++)
		formats[i] = get_int16(message);
	return formats;
}

/*
 * The rest of it, of the statement that has been found: what it is bound to is in
 * bind->piped->params, in CurrentMemoryContext.
 */
void
MotBindValues(StringInfo message, MotBind *bind)
{
	CachedPlanSource *source = bind->source;
	int			nformats;
	int16	   *formats = read_formats(message, &nformats);
	int			nparams = get_int16(message);

	if (nformats > 1 && nformats != nparams)
		ereport(ERROR,
				(errcode(ERRCODE_PROTOCOL_VIOLATION),
				 errmsg("bind message has %d parameter formats but %d parameters", nformats, nparams)));
	if (nparams != source->num_params)
		ereport(ERROR,
				(errcode(ERRCODE_PROTOCOL_VIOLATION),
				 errmsg("bind message supplies %d parameters, but prepared statement \"%s\" requires %d",
						nparams, bind->statement, source->num_params)));
	/* its error comes before those of values */
	if (bind->portal[0] != '\0' && PortalIsValid(GetPortalByName(bind->portal)))
		(void) CreatePortal(bind->portal, false, false);
	if (bind->piped == NULL || bind->piped->source != source)
		bind->piped = piped_of(source);
	if (nparams > 0)
	{
		Reading		reading = {.portal = bind->portal};
		ErrorContextCallback context = {error_context_stack, say_parameter, &reading};

		/* users' input functions may want it */
		if (!bind->piped->plain)
			PushActiveSnapshot(GetTransactionSnapshot());
		error_context_stack = &context;
		for (; reading.param < nparams; reading.param++)
			read_value(message, bind->piped, nformats == 0 ? 0 : formats[nformats == 1 ? 0 : reading.param], &reading);
		error_context_stack = context.previous;
		if (!bind->piped->plain)
			PopActiveSnapshot();
	}
	bind->formats = read_formats(message, &bind->nformats);
	pq_getmsgend(message);
}

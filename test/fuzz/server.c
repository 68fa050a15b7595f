/*-------------------------------------------------------------------------
 *
 * server.c
 *	  As much of the server, and of other files, as fuzzed files call: memory, string buffers, errors.
 *
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include "access/tupdesc.h"
#include "compat/assert.h"
#include "lib/stringinfo.h"
#include "utils/memutils.h"

/* not the server's own */
#undef printf
#undef fprintf
#undef vsnprintf

sigjmp_buf	fuzz_error;
MemoryContext CurrentMemoryContext = NULL;

static int	level;				/* of what is being raised */

/* ------------------------------------------------------------------ memory */

/* each has a list's link before it */
typedef struct Piece
{
	struct Piece *next;
	struct Piece *previous;
} Piece;

static Piece pieces = {&pieces, &pieces};

static void *
allocate(size_t size, size_t most)
{
	Piece	   *p;

	if (size > most)
		siglongjmp(fuzz_error, 1);
	p = malloc(sizeof(Piece) + size);
	if (p == NULL)
		abort();
	p->next = pieces.next;
	p->previous = &pieces;
	p->next->previous = pieces.next = p;
	return p + 1;
}

void *
palloc(Size size)
{
	return allocate(size, MaxAllocSize);
}

void *
palloc0(Size size)
{
	return memset(palloc(size), 0, size);
}

void *
MemoryContextAllocHuge(MemoryContext context, Size size)
{
	return allocate(size, MaxAllocHugeSize);
}

void
pfree(void *pointer)
{
	Piece	   *p = (Piece *) pointer - 1;

	p->next->previous = p->previous;
	p->previous->next = p->next;
	free(p);
}

void
fuzz_free_all(void)
{
	while (pieces.next != &pieces)
		pfree(pieces.next + 1);
}

void
fuzz_read(const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		(void) ((const volatile uint8 *) bytes)[i];
}

MemoryContext
AllocSetContextCreateInternal(MemoryContext parent, const char *name, Size min, Size initial, Size max)
{
	return NULL;
}

void
MemoryContextSetParent(MemoryContext context, MemoryContext parent)
{
}

char *
psprintf(const char *fmt,...)
{
	char	   *s = palloc(1024);
	va_list		args;

	va_start(args, fmt);
	(void) vsnprintf(s, 1024, fmt, args);
	va_end(args);
	return s;
}

char *
pstrdup(const char *s)
{
	return strcpy(palloc(strlen(s) + 1), s);
}

char *
pnstrdup(const char *s, Size len)
{
	size_t		most = strnlen(s, len);
	char	   *copy = memcpy(palloc(most + 1), s, most);

	copy[most] = '\0';
	return copy;
}

void *
MemoryContextAllocZero(MemoryContext context, Size size)
{
	return palloc0(size);
}

char *
MemoryContextStrdup(MemoryContext context, const char *s)
{
	return pstrdup(s);
}

void
initStringInfo(StringInfo str)
{
	str->maxlen = 64;
	str->data = palloc(str->maxlen);
	str->len = 0;
	str->cursor = 0;
}

void
enlargeStringInfo(StringInfo str, int needed)
{
	char	   *data;

	str->maxlen = 2 * str->maxlen + needed + 1;
	data = palloc(str->maxlen);
	memcpy(data, str->data, str->len);
	pfree(str->data);
	str->data = data;
}

static void
append(StringInfo str, const void *data, int len)
{
	if (str->len + len >= str->maxlen)
		enlargeStringInfo(str, len);
	memcpy(str->data + str->len, data, len);
	str->len += len;
	str->data[str->len] = '\0';
}

/* (what bytes are called differs) */
__typeof__(appendBinaryStringInfo) appendBinaryStringInfo __attribute__((alias("append")));

void
appendStringInfoChar(StringInfo str, char c)
{
	appendBinaryStringInfo(str, &c, 1);
}

TupleDesc
CreateTemplateTupleDesc(int natts)
{
	TupleDesc	desc = palloc0(offsetof(struct TupleDescData, attrs) + (natts + 1) * sizeof(FormData_pg_attribute));

	desc->natts = natts;
	return desc;
}

/* ------------------------------------------------------------------ errors */

bool
errstart(int elevel, const char *domain)
{
	level = elevel;
	return true;
}

bool
errstart_cold(int elevel, const char *domain)
{
	return errstart(elevel, domain);
}

void
errfinish(const char *filename, int lineno, const char *funcname)
{
	if (level >= ERROR)
		siglongjmp(fuzz_error, 1);
}

int
errcode(int sqlerrcode)
{
	return 0;
}

int
errmsg(const char *fmt,...)
{
	return 0;
}

int
errmsg_internal(const char *fmt,...)
{
	return 0;
}

int
errdetail(const char *fmt,...)
{
	return 0;
}

int
errhint(const char *fmt,...)
{
	return 0;
}

/* (as wal/file.h and format.h have them) */
extern pg_crc32c MotFileChecksum(const void *bytes, Size len);
extern void MotFileRaiseDamaged(const char *path, uint64 offset, const char *what);
extern void MotRaiseFormat(const char *what, int found, int known);

pg_crc32c
MotFileChecksum(const void *bytes, Size len)
{
	fuzz_read(bytes, len);
	return 0;
}

void
MotFileRaiseDamaged(const char *path, uint64 offset, const char *what)
{
	siglongjmp(fuzz_error, 1);
}

void
MotRaiseFormat(const char *what, int found, int known)
{
	siglongjmp(fuzz_error, 1);
}

void
MotExceptionalCondition(condition, file, line)
{
	fprintf(stderr, "assertion failed: %s at %s:%d\n", condition, file, line);
	abort();
}

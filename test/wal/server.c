/*-------------------------------------------------------------------------
 *
 * server.c
 *	  As much of the server as the files under test call: string buffers, and
 *	  errors, which end the test.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/assert.h"
#include "lib/stringinfo.h"

/* not the server's own */
#undef printf
#undef fprintf

void
initStringInfo(StringInfo str)
{
	str->maxlen = 64;
	str->data = malloc(str->maxlen);
	str->len = 0;
	str->cursor = 0;
}

/* always moves the bytes, so that a pointer kept too long is noticed */
void
enlargeStringInfo(StringInfo str, int needed)
{
	char	   *data;

	str->maxlen = 2 * str->maxlen + needed + 1;
	data = malloc(str->maxlen);
	memcpy(data, str->data, str->len);
	free(str->data);
	str->data = data;
}

bool
errstart(int elevel, const char *domain)
{
	return true;
}

bool
errstart_cold(int elevel, const char *domain)
{
	return true;
}

void
errfinish(const char *filename, int lineno, const char *funcname)
{
	fprintf(stderr, "error raised at %s:%d\n", filename, lineno);
	abort();
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

void
MotExceptionalCondition(condition, file, line)
{
	fprintf(stderr, "assertion failed: %s at %s:%d\n", condition, file, line);
	abort();
}

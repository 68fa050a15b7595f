/*-------------------------------------------------------------------------
 *
 * format.c
 *	  What is of a format that nobody here knows: see format.h.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "format.h"

void
MotRaiseFormat(const char *what, int found, int newest)
{
	ereport(ERROR,
			(errcode(MOT_FORMAT_ERRCODE),
			 errmsg("%s is of format %d, and this version of mot reads formats 1 to %d", what, found, newest),
			 errhint("Install the version of mot that has written it, or a newer one, and restart the server; nothing has been changed.")));
}

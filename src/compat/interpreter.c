/*-------------------------------------------------------------------------
 *
 * interpreter.c
 *	  Settings of PL/pgSQL's interpreter, whose variables are its own.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/compat.h"
#include "compat/interpreter.h"

/* Where a setting's text is; NULL: there is none. */
static char **
text_of(const char *name)
{
	struct config_generic *found = MotSettingFind(name);

	if (found == NULL || found->vartype != PGC_STRING)
		return NULL;
#if PG_VERSION_NUM >= 190000
	return found->_string.variable;
#else
	return ((struct config_string *) found)->variable;
#endif
}

bool
MotInterpreterChecks(void)
{
	static char **errors = NULL;
	static char **warnings = NULL;

	if (unlikely(errors == NULL || warnings == NULL))
	{
		errors = text_of("plpgsql.extra_errors");
		warnings = text_of("plpgsql.extra_warnings");
		if (errors == NULL || warnings == NULL)
			return true;
	}
	return *errors == NULL || strcmp(*errors, "none") != 0 || *warnings == NULL || strcmp(*warnings, "none") != 0;
}

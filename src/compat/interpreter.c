/*-------------------------------------------------------------------------
 *
 * interpreter.c
 *	  Settings of PL/pgSQL's interpreter, whose variables are its own.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/interpreter.h"
#include "utils/guc_tables.h"

/* Where a setting's text is; NULL: there is none. */
static char **
text_of(const char *name)
{
	struct config_generic *found = NULL;

#if PG_VERSION_NUM >= 160000
	found = find_option(name, false, true, 0);
#else
	struct config_generic **all = get_guc_variables();

	for (int i = 0; i < GetNumConfigOptions() && found == NULL; i++)
		if (strcmp(all[i]->name, name) == 0)
			found = all[i];
#endif
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

/*-------------------------------------------------------------------------
 *
 * modules.c
 *	  Other modules with hooks in the executor.
 *
 * A query that runs without the server's nodes has none to show.  A module
 * whose hooks are above ours may want to see them: auto_explain does when its
 * setting says so, pg_stat_statements never does, and of a module that we do
 * not know, we must think that it does.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dlfcn.h>

#include "compat/modules.h"
#include "executor/executor.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"

static bool unknown_module = false;
static const int *explain_threshold = NULL;

static void
look_at(const void *hook, const void *ours)
{
	Dl_info		info;
	const char *name;

	if (hook == ours || hook == NULL)
		return;
	if (dladdr(hook, &info) == 0 || info.dli_fname == NULL)
	{
		unknown_module = true;
		return;
	}
	name = strrchr(info.dli_fname, '/');
	name = name != NULL ? name + 1 : info.dli_fname;
	if (strncmp(name, "pg_stat_statements.", 19) != 0 && strncmp(name, "auto_explain.", 13) != 0)
		unknown_module = true;
}

/* auto_explain.log_min_duration, where its hooks read it; NULL if it is not loaded */
static const int *
find_threshold(void)
{
	struct config_generic **variables = get_guc_variables();

	for (int i = 0; i < GetNumConfigOptions(); i++)
		if (variables[i]->vartype == PGC_INT &&
			strcmp(variables[i]->name, "auto_explain.log_min_duration") == 0)
			return ((struct config_int *) variables[i])->variable;
	return NULL;
}

bool
MotModulesLookAtPlans(const void *start, const void *run, const void *finish, const void *end)
{
	static const void *seen[4];

	if (unlikely(seen[0] != (const void *) ExecutorStart_hook ||
				 seen[1] != (const void *) ExecutorRun_hook ||
				 seen[2] != (const void *) ExecutorFinish_hook ||
				 seen[3] != (const void *) ExecutorEnd_hook))
	{
		unknown_module = false;
		look_at((const void *) ExecutorStart_hook, start);
		look_at((const void *) ExecutorRun_hook, run);
		look_at((const void *) ExecutorFinish_hook, finish);
		look_at((const void *) ExecutorEnd_hook, end);
		explain_threshold = find_threshold();
		seen[0] = (const void *) ExecutorStart_hook;
		seen[1] = (const void *) ExecutorRun_hook;
		seen[2] = (const void *) ExecutorFinish_hook;
		seen[3] = (const void *) ExecutorEnd_hook;
	}
	return unknown_module || (explain_threshold != NULL && *explain_threshold >= 0);
}

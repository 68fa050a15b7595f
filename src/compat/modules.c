/*-------------------------------------------------------------------------
 *
 * modules.c
 *	  Other modules with hooks in the executor.
 *
 * A query that runs without the server's nodes has none to show, and one whose
 * executor state is kept does not end for those who have put something into
 * its memory.  A module whose hooks are above ours may want either: pgaudit
 * takes its stack down when the query's memory goes.  Of those we know,
 * pg_stat_statements wants neither, and auto_explain says by its setting whether
 * it wants to see plans; of any other, we must think that it does.
 *
 * The hooks tell who is at the top, but not who is between that and us.  So
 * when somebody new is at the top, all libraries of the process are asked
 * whether they know the hooks at all: that is in their relocations.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dlfcn.h>
#include <link.h>

#include "compat/compat.h"
#include "compat/modules.h"

ExecutorRun_hook_type MotModulesRun = NULL;

static bool unknown_module = false;
static const int *explain_threshold = NULL;

#if SIZEOF_VOID_P == 8
#define RELOCATION_SYMBOL(info) ELF64_R_SYM(info)
#else
#define RELOCATION_SYMBOL(info) ELF32_R_SYM(info)
#endif

static bool
is_hook(const char *name)
{
	return strcmp(name, "ExecutorStart_hook") == 0 || strcmp(name, "ExecutorRun_hook") == 0 ||
		strcmp(name, "ExecutorFinish_hook") == 0 || strcmp(name, "ExecutorEnd_hook") == 0;
}

/* an address in a dynamic section: some systems have put the library's base into it, some not */
static const char *
dynamic_address(const struct dl_phdr_info *info, ElfW(Addr) address)
{
	return (const char *) (address < info->dlpi_addr ? address + info->dlpi_addr : address);
}

/* Does a library refer to one of the executor's hooks? */
static bool
knows_hooks(const struct dl_phdr_info *info)
{
	const		ElfW(Dyn) * dynamic = NULL;
	const		ElfW(Sym) * symbols = NULL;
	const char *strings = NULL;
	const char *relocations = NULL;
	size_t		size = 0;
	size_t		entry = 0;

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const ElfW(Dyn) *) (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; dynamic != NULL && dynamic->d_tag != DT_NULL; dynamic++)
		switch (dynamic->d_tag)
		{
			case DT_SYMTAB:
				symbols = (const ElfW(Sym) *) dynamic_address(info, dynamic->d_un.d_ptr);
				break;
			case DT_STRTAB:
				strings = dynamic_address(info, dynamic->d_un.d_ptr);
				break;
			case DT_RELA:
			case DT_REL:
				relocations = dynamic_address(info, dynamic->d_un.d_ptr);
				break;
			case DT_RELASZ:
			case DT_RELSZ:
				size = dynamic->d_un.d_val;
				break;
			case DT_RELAENT:
			case DT_RELENT:
				entry = dynamic->d_un.d_val;
				break;
			default:
				break;
		}
	if (symbols == NULL || strings == NULL || relocations == NULL || entry == 0)
		return false;
	for (size_t at = 0; at + entry <= size; at += entry)
	{
		/* what Rel and Rela have in common */
		const		ElfW(Rel) * rel = (const ElfW(Rel) *) (relocations + at);
		size_t symbol = RELOCATION_SYMBOL(rel->r_info);

		if (symbol !=0 && is_hook(strings + symbols[symbol].st_name))
			return true;
	}
	return false;
}

static bool
is_known(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name != NULL ? name + 1 : path;
	return strncmp(name, "pg_stat_statements.", 19) == 0 || strncmp(name, "auto_explain.", 13) == 0;
}

static int
look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	const		Dl_info *ours = arg;

	/* the program itself has no name */
	if (info->dlpi_name != NULL && info->dlpi_name[0] != '\0' &&
		info->dlpi_addr != (ElfW(Addr)) ours->dli_fbase &&
		!is_known(info->dlpi_name) && knows_hooks(info))
		unknown_module = true;
	return 0;
}

/* where an integer setting is */
#if PG_VERSION_NUM >= 190000
#define INT_OF(setting) ((setting)->_int.variable)
#else
#define INT_OF(setting) (((struct config_int *) (setting))->variable)
#endif

/* auto_explain.log_min_duration, where its hooks read it; NULL if it is not loaded */
static const int *
find_threshold(void)
{
	struct config_generic *setting = MotSettingFind("auto_explain.log_min_duration");

	return setting != NULL && setting->vartype == PGC_INT ? INT_OF(setting) : NULL;
}

/*
 * Could another module keep something for a query in its memory, and wait for
 * that to go?
 */
static bool
is_other_there(void)
{
	static const void *seen[4];
	Dl_info		ours;

	if (likely(seen[0] == (const void *) ExecutorStart_hook &&
			   seen[1] == (const void *) ExecutorRun_hook &&
			   seen[2] == (const void *) ExecutorFinish_hook &&
			   seen[3] == (const void *) ExecutorEnd_hook))
		return unknown_module;

	unknown_module = dladdr((const void *) is_other_there, &ours) == 0;
	if (!unknown_module)
		(void) dl_iterate_phdr(look_at, &ours);
	explain_threshold = find_threshold();
	seen[0] = (const void *) ExecutorStart_hook;
	seen[1] = (const void *) ExecutorRun_hook;
	seen[2] = (const void *) ExecutorFinish_hook;
	seen[3] = (const void *) ExecutorEnd_hook;
	return unknown_module;
}

bool
MotModulesLookAtPlans(void)
{
	return is_other_there() || (explain_threshold != NULL && *explain_threshold >= 0);
}

/*-------------------------------------------------------------------------
 *
 * mot.c
 *	  Module entry: settings, the engine's memory, the hooks of all rooms.
 *
 * The engine's region has to be at the same address in every process, so it
 * is reserved in the postmaster, before anything is forked; that needs
 * shared_preload_libraries.  A module that was loaded otherwise has no engine
 * and takes no hooks: its catalogue objects can be looked at and dropped, and
 * everything else says what to add to postgresql.conf.
 *
 * An engine that cannot reserve its memory does not keep the server from
 * starting; the log says why, and so does every statement that needs it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/extension.h"
#include "compat/compat.h"
#include "compat/counters.h"
#include "compat/waitevent.h"
#include "faults.h"
#include "fmgr.h"
#include "islands/measure.h"
#include "machine/machine.h"
#include "maintenance.h"
#include "miscadmin.h"
#include "mot.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/pg_shmem.h"
#include "storage/shmem.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "wal/wal.h"
#include "xact/xact.h"

PG_MODULE_MAGIC;

/* mot.max_memory's default: this share of the machine's or container's memory */
#define DEFAULT_MEMORY_SHARE 4
#define MIN_MEMORY_MB 64
#define MAX_MEMORY_MB (16 * 1024 * 1024)

int			mot_default_engine = MOT_DEFAULT_HEAP;
int			mot_write_conflicts = MOT_WRITE_CONFLICTS_WAIT;
bool		mot_early_locks = false;
int			mot_max_memory_mb = -1;
double		mot_insert_reserve = MOT_LEAST_RESERVE;

mot_engine *MotEngine = NULL;
LWLock	   *MotDirectoryLock = NULL;

static int	huge_pages_setting = MOT_HUGE_PAGES_TRY;
static bool preloaded = false;
static char reserve_error[256];

/* what the two settings that only tell something show */
static int	memory_in_huge_pages = 0;
static char *shown_huge_pages = NULL;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static const struct config_enum_entry default_engine_options[] = {
	{"heap", MOT_DEFAULT_HEAP, false},
	{"mot", MOT_DEFAULT_MOT, false},
	{NULL, 0, false}
};

static const struct config_enum_entry write_conflicts_options[] = {
	{"wait", MOT_WRITE_CONFLICTS_WAIT, false},
	{"abort", MOT_WRITE_CONFLICTS_ABORT, false},
	{NULL, 0, false}
};

static const struct config_enum_entry huge_pages_options[] = {
	{"off", MOT_HUGE_PAGES_OFF, false},
	{"try", MOT_HUGE_PAGES_TRY, false},
	{"on", MOT_HUGE_PAGES_ON, false},
	{"false", MOT_HUGE_PAGES_OFF, true},
	{"no", MOT_HUGE_PAGES_OFF, true},
	{"0", MOT_HUGE_PAGES_OFF, true},
	{"true", MOT_HUGE_PAGES_ON, true},
	{"yes", MOT_HUGE_PAGES_ON, true},
	{"1", MOT_HUGE_PAGES_ON, true},
	{NULL, 0, false}
};

PGDLLEXPORT void _PG_init(void);

PG_FUNCTION_INFO_V1(mot_require_preload);

static void define_settings(void);
static void resolve_max_memory(void);
static bool check_max_memory(int *newval, void **extra, GucSource source);
static void request_shmem(void);
static void startup_shmem(void);
static void create_engine(void);
static uint64 server_huge_pages(void);
static bool huge_pages_allowed(void);

void
_PG_init(void)
{
	preloaded = process_shared_preload_libraries_in_progress;

	/*
	 * CREATE EXTENSION raises the same as an error, from its script.
	 * pg_upgrade loads the module first of all: it is to end there.
	 */
	if (!preloaded && !creating_extension)
		ereport(IsBinaryUpgrade ? ERROR : WARNING,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("mot was not loaded at server start, so memory-optimized tables cannot be used"),
				 errhint("Add shared_preload_libraries = 'mot' to postgresql.conf and restart the server.")));

	define_settings();

	if (!preloaded)
	{
		MarkGUCPrefixReserved("mot");
		return;
	}

	MotMachineInit();
	resolve_max_memory();
	SetConfigOption("mot.memory_in_huge_pages",
					psprintf("%d", (int) mot_engine_huge_pages((size_t) mot_max_memory_mb * 1024 * 1024)),
					PGC_INTERNAL, PGC_S_DYNAMIC_DEFAULT);

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shmem;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_shmem;

	MotIslandsInit();
	MotXactInit();
	MotWalInit();
	MotRelationInit();
	MotMonitorInit();
	MotSizesInit();
	MotDdlInit();
	MotFdwInit();
	MotTableInit();
	MotStatementInit();
	MotProcedureInit();
	MotPipelineInit();
	MotBatchInit();
	MotRegisterWorker("mot maintenance", "MotMaintenanceMain", BgWorkerStart_ConsistentState, 5);

	/* the rooms have defined theirs */
	MarkGUCPrefixReserved("mot");
}

bool
MotPreloaded(void)
{
	return preloaded;
}

HTAB *
MotHashCreate(const char *name, long nelem, Size keysize, Size entrysize, MemoryContext cxt)
{
	HASHCTL		ctl = {.keysize = keysize,.entrysize = entrysize,.hcxt = cxt};

	return hash_create(name, nelem, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

ErrorData *
MotErrorTake(MemoryContext cxt)
{
	ErrorData  *edata;

	MemoryContextSwitchTo(cxt);
	edata = CopyErrorData();
	FlushErrorState();
	return edata;
}

bool		MotCleansUp = false;

void
MotErrorLog(MemoryContext cxt, const char *what,...)
{
	char		told[256];
	uint32		holdoff;
	va_list		args;

	va_start(args, what);
	(void) vsnprintf(told, sizeof(told), what, args);
	va_end(args);
	HOLD_INTERRUPTS();
	holdoff = InterruptHoldoffCount;
	PG_TRY();
	{
		ErrorData  *edata = MotErrorTake(cxt);

		MOT_FAULT("failure-told");
		ereport(LOG_SERVER_ONLY,
				(errcode(edata->sqlerrcode),
				 errmsg_internal("%s: %s", told, edata->message)));
		FreeErrorData(edata);
	}
	PG_CATCH();
	{
		/* (there is no memory for that, either) */
		InterruptHoldoffCount = holdoff;
		MemoryContextSwitchTo(cxt);
		FlushErrorState();
	}
	PG_END_TRY();
	RESUME_INTERRUPTS();
}

mot_engine *
MotEngineRequired(void)
{
	if (likely(MotEngine != NULL))
		return MotEngine;

	if (!preloaded)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("mot must be loaded at server start"),
				 errhint("Add shared_preload_libraries = 'mot' to postgresql.conf and restart the server.")));

	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
			 errmsg("memory-optimized tables are not available: their memory could not be reserved at server start"),
			 errdetail("%s.", reserve_error),
			 errhint("Set mot.max_memory to less than %d MB, or give the server more memory, and restart it.",
					 mot_max_memory_mb)));
	return NULL;				/* not reached */
}

/*
 * mot_require_preload() is called by the extension's script and then dropped:
 * CREATE EXTENSION on a server that did not preload the module would make
 * objects that nobody can use.
 */
Datum
mot_require_preload(PG_FUNCTION_ARGS)
{
	if (!preloaded)
		MotEngineRequired();
	PG_RETURN_VOID();
}

/* --------------------------------------------------------------- settings */

static void
define_settings(void)
{
	/* the server refuses these two when it has started already */
	if (preloaded)
	{
		DefineCustomIntVariable("mot.max_memory",
								"Memory for the rows and indexes of memory-optimized tables.",
								"-1 or 0 means a quarter of the memory of the machine or its control group.",
								&mot_max_memory_mb,
								-1, -1, MAX_MEMORY_MB,
								PGC_POSTMASTER, GUC_UNIT_MB,
								check_max_memory, NULL, NULL);

		DefineCustomEnumVariable("mot.huge_pages",
								 "Use of huge pages for memory-optimized tables.",
								 NULL,
								 &huge_pages_setting,
								 MOT_HUGE_PAGES_TRY, huge_pages_options,
								 PGC_POSTMASTER, 0,
								 NULL, NULL, NULL);

		DefineCustomIntVariable("mot.memory_in_huge_pages",
								"Shows the number of huge pages of 2 MB that mot.max_memory takes.",
								"The server's shared memory takes shared_memory_size_in_huge_pages beside them.",
								&memory_in_huge_pages,
								0, 0, INT_MAX,
								PGC_INTERNAL, GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
								NULL, NULL, NULL);

		DefineCustomStringVariable("mot.huge_pages_status",
								   "Shows whether memory-optimized tables are in reserved huge pages.",
								   NULL,
								   &shown_huge_pages,
								   "off",
								   PGC_INTERNAL, GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
								   NULL, NULL, NULL);
	}

	DefineCustomRealVariable("mot.insert_reserve",
							 "Part of mot.max_memory that new rows leave free for changes of those that are there, in percent.",
							 NULL,
							 &mot_insert_reserve,
							 MOT_LEAST_RESERVE, MOT_LEAST_RESERVE, 90,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);

	DefineCustomEnumVariable("mot.default_engine",
							 "Storage that a plain CREATE TABLE uses.",
							 "With \"mot\", CREATE TABLE without USING says USING mot, but for temporary and unlogged tables.",
							 &mot_default_engine,
							 MOT_DEFAULT_HEAP, default_engine_options,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);

	DefineCustomEnumVariable("mot.write_conflicts",
							 "What a transaction does that is to write or lock a row of a memory-optimized table which another one holds.",
							 "It waits for the other transaction, or fails with a serialization error.",
							 &mot_write_conflicts,
							 MOT_WRITE_CONFLICTS_WAIT, write_conflicts_options,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);

	DefineCustomBoolVariable("mot.early_locks",
							 "Above READ COMMITTED, updates of memory-optimized tables lock their rows at once instead of at commit.",
							 "Sessions of postgres_fdw, and all in databases that have it, always do so.",
							 &mot_early_locks,
							 false,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);

	MotFaultInit();
}

/*
 * A server whose file asks for less has the least there is.  Of what is refused then it
 * would take the default, a quarter of the machine.  What a session asks for (ALTER
 * SYSTEM) is refused.
 */
static bool
check_max_memory(int *newval, void **extra, GucSource source)
{
	if (*newval <= 0 || *newval >= MIN_MEMORY_MB)
		return true;
	if (IsUnderPostmaster)
	{
		GUC_check_errdetail("mot.max_memory must be at least %dMB.", MIN_MEMORY_MB);
		return false;
	}
	if (process_shared_preload_libraries_in_progress)
		ereport(WARNING,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("mot.max_memory is %dMB instead of %dMB", MIN_MEMORY_MB, *newval),
				 errdetail("mot.max_memory must be at least %dMB.", MIN_MEMORY_MB)));
	*newval = MIN_MEMORY_MB;
	return true;
}

/*
 * Put the default share in the place of -1 and 0, as the server does for
 * wal_buffers, so that SHOW tells what is in force.
 */
static void
resolve_max_memory(void)
{
	char		value[32];
	uint64 share;

	if (mot_max_memory_mb > 0)
		return;

	share = MotMachineMemory() / DEFAULT_MEMORY_SHARE / (1024 * 1024);
	share = Min(Max(share, MIN_MEMORY_MB), MAX_MEMORY_MB);

	snprintf(value, sizeof(value), UINT64_FORMAT "MB", share);
	SetConfigOption("mot.max_memory", value, PGC_POSTMASTER, PGC_S_DYNAMIC_DEFAULT);
	if (mot_max_memory_mb <= 0)
		SetConfigOption("mot.max_memory", value, PGC_POSTMASTER, PGC_S_OVERRIDE);
}

/* ----------------------------------------------------------------- memory */

#if defined(PG_HAVE_ATOMIC_U32_SIMULATION) || defined(PG_HAVE_ATOMIC_U64_SIMULATION)
#error "mot needs atomic words of 32 and 64 bits"
#endif

static Size
part_size(const MotShmem *part)
{
	return add_size(part->size, mul_size(MotProcessSlots(), part->each));
}

void
MotShmemRequest(const MotShmem *const *parts)
{
	for (; *parts != NULL; parts++)
		RequestAddinShmemSpace(part_size(*parts));
}

void
MotShmemInit(const MotShmem *const *parts)
{
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	for (; *parts != NULL; parts++)
	{
		bool		found;

		*(*parts)->at = ShmemInitStruct((*parts)->name, part_size(*parts), &found);
		if (found)
			continue;
		memset(*(*parts)->at, 0, part_size(*parts));
		if ((*parts)->init != NULL)
			(*parts)->init();
	}
	LWLockRelease(AddinShmemInitLock);
}

static void
request_shmem(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	RequestNamedLWLockTranche("mot_directory", 1);
	MotCountersShmemRequest();
	MotMachineShmemRequest();
	MotIslandsShmemRequest();
	MotXactShmemRequest();
	MotWalShmemRequest();
}

/*
 * In the postmaster before it forks, and again when it starts over after a
 * crash: the processes that had sessions are gone then, and a half-done
 * change may be anywhere in the region, so it becomes empty.
 */
static void
startup_shmem(void)
{
	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	MotDirectoryLock = &(GetNamedLWLockTranche("mot_directory"))->lock;
	MotWaitEventsInit();
	MotCountersShmemInit();
	MotMachineShmemInit();
	MotIslandsShmemInit();
	MotXactShmemInit();
	MotWalShmemInit();

	if (MotEngine != NULL)
		mot_engine_reset(MotEngine);
	else
		create_engine();
	if (MotEngine != NULL)
		mot_engine_set_insert_reserve(MotEngine, mot_insert_reserve / 100);
}

static void
create_engine(void)
{
	bool		allowed = huge_pages_setting != MOT_HUGE_PAGES_OFF && huge_pages_allowed();
	unsigned	flags = 0;

	if (allowed)
		flags = huge_pages_setting == MOT_HUGE_PAGES_ON ? MOT_ENGINE_HUGE_ON : MOT_ENGINE_HUGE_TRY;

	if (MotSlots() > MOT_MAX_SLOTS)
		snprintf(reserve_error, sizeof(reserve_error),
				 "The engine serves at most %d processes, and the settings allow %d",
				 MOT_MAX_SLOTS, MotSlots());
	else if (huge_pages_setting == MOT_HUGE_PAGES_ON && !allowed)
		snprintf(reserve_error, sizeof(reserve_error),
				 "The control group does not allow %d huge pages", memory_in_huge_pages);
	else
		MotEngine = mot_engine_create((size_t) mot_max_memory_mb * 1024 * 1024,
									  MotSlots(), flags,
									  reserve_error, sizeof(reserve_error));

	if (MotEngine == NULL)
		ereport(LOG,
				(errmsg("could not reserve %d MB for memory-optimized tables: the server starts without them",
						mot_max_memory_mb),
				 errdetail("%s.", reserve_error)));
	else if (mot_engine_huge(MotEngine))
		SetConfigOption("mot.huge_pages_status", "on", PGC_INTERNAL, PGC_S_DYNAMIC_DEFAULT);
	else if (huge_pages_setting == MOT_HUGE_PAGES_TRY)
		ereport(LOG,
				(errmsg("memory-optimized tables go without huge pages: %s",
						allowed ? reserve_error : "the control group does not allow so many"),
				 errhint("They take %d huge pages, so with the server's own vm.nr_hugepages has to be at least " UINT64_FORMAT ".",
						 memory_in_huge_pages, memory_in_huge_pages + server_huge_pages())));
}

/* number of huge pages that the server's own shared memory may have */
static uint64
server_huge_pages(void)
{
	const char *pages = GetConfigOption("shared_memory_size_in_huge_pages", true, false);

	return huge_pages == HUGE_PAGES_OFF || pages == NULL ? 0 : Max(atoi(pages), 0);
}

/* does the control group let us have so many, if there are any? */
static bool
huge_pages_allowed(void)
{
	return (memory_in_huge_pages + server_huge_pages()) * MOT_HUGE_PAGE_SIZE <= MotMachineHugePages();
}

/*-------------------------------------------------------------------------
 *
 * faults.c
 *	  What happens at the named points of faults.h.  Test builds only.
 *
 * A point may lie in a critical section, in the startup process or in the
 * postmaster's child that is just starting: nothing here allocates or takes a
 * lock.  (Telling the log is allowed everywhere.)
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "faults.h"

#ifdef MOT_FAULTS

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "miscadmin.h"
#include "storage/pmsignal.h"
#include "utils/guc.h"

#define GO_FILE		"mot.fault.go"
#define MAX_FAULTS	16

typedef struct Fault
{
	char		point[64];
	char		action[16];
	int			nth;			/* 0: every time */
	int			reached;
} Fault;

static char *mot_fault = NULL;
static Fault fault[MAX_FAULTS];
static int	nfaults = 0;

static const char *const actions[] = {"kill", "killall", "crash", "error", "fatal", "sleep", "wait", "log", "skip"};

static bool check_fault(char **newval, void **extra, GucSource source);
static void assign_fault(const char *newval, void *extra);
static bool act(Fault *f);

void
MotFaultInit(void)
{
	DefineCustomStringVariable("mot.fault",
							   "What to do at named points (test builds only).",
							   "A list of point:action[:nth].",
							   &mot_fault,
							   "",
							   PGC_SUSET, GUC_NOT_IN_SAMPLE,
							   check_fault, assign_fault, NULL);
}

static bool
parse(const char *list, Fault *into, int *n)
{
	*n = 0;
	while (*list != '\0')
	{
		Fault	   *f = &into[*n];
		size_t		len = strcspn(list, ",");
		char		item[128];
		char	   *action;
		char	   *nth;
		bool		known = false;

		if (*n == MAX_FAULTS || len >= sizeof(item))
			return false;
		memcpy(item, list, len);
		item[len] = '\0';
		list += len + (list[len] == ',');

		action = strchr(item, ':');
		if (action == NULL)
			return false;
		*action++ = '\0';
		nth = strchr(action, ':');
		if (nth != NULL)
			*nth++ = '\0';
		for (int i = 0; i < lengthof(actions); i++)
			known = known || strcmp(action, actions[i]) == 0;
		if (!known || strlen(item) >= sizeof(f->point))
			return false;
		strlcpy(f->point, item, sizeof(f->point));
		strlcpy(f->action, action, sizeof(f->action));
		f->nth = nth != NULL ? atoi(nth) : 0;
		f->reached = 0;
		(*n)++;
	}
	return true;
}

static bool
check_fault(char **newval, void **extra, GucSource source)
{
	Fault		parsed[MAX_FAULTS];
	int			n;

	return parse(*newval, parsed, &n);
}

static void
assign_fault(const char *newval, void *extra)
{
	(void) parse(newval, fault, &nfaults);
}

/* true: the caller is to leave out what it was about to do */
bool
MotFaultReached(const char *point)
{
	for (int i = 0; i < nfaults; i++)
		if (strcmp(fault[i].point, point) == 0)
		{
			fault[i].reached++;
			if (fault[i].nth == 0 || fault[i].nth == fault[i].reached)
				return act(&fault[i]);
		}
	return false;
}

static bool
act(Fault *f)
{
	struct stat st;

	ereport(LOG,
			(errmsg("fault point \"%s\" reached: %s", f->point, f->action),
			 errhidestmt(true)));

	if (strcmp(f->action, "kill") == 0)
		kill(getpid(), SIGKILL);
	else if (strcmp(f->action, "killall") == 0)
	{
		/* the server's other processes notice that the postmaster has gone */
		kill(PostmasterPid, SIGKILL);
		kill(getpid(), SIGKILL);
	}
	else if (strcmp(f->action, "crash") == 0)
		raise(SIGSEGV);
	else if (strcmp(f->action, "error") == 0 || strcmp(f->action, "fatal") == 0)
		ereport(strcmp(f->action, "error") == 0 ? ERROR : FATAL,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("fault point \"%s\"", f->point)));
	else if (strcmp(f->action, "sleep") == 0)
		pg_usleep(1000000L);
	else if (strcmp(f->action, "wait") == 0)
	{
		while (stat(GO_FILE, &st) != 0 && PostmasterIsAlive())
			pg_usleep(10000L);
	}
	return strcmp(f->action, "skip") == 0;
}

#endif							/* MOT_FAULTS */

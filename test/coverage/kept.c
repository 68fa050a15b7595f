/*
 * kept.c
 *	  Preloaded into servers that count with gcov: who ends by _exit() (an immediate stop), by
 *	  abort() (a PANIC) or by a SIGKILL that it sends (mot.fault) writes its counters first.
 *
 * A signal handler may come here from anywhere, malloc() included.  A process that does not get
 * through is killed by the postmaster, as any that does not heed SIGQUIT; its counters are lost.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

__attribute__((visibility("default"))) void (*coverage_flush) (void);

static void
flush(void)
{
	void		(*once) (void) = coverage_flush;

	coverage_flush = NULL;
	if (once != NULL)
		once();
}

void
_exit(int status)
{
	void		(*next) (int) = dlsym(RTLD_NEXT, "_exit");

	flush();
	next(status);
	__builtin_unreachable();
}

void
abort(void)
{
	void		(*next) (void) = dlsym(RTLD_NEXT, "abort");

	flush();
	next();
	__builtin_unreachable();
}

int
kill(pid_t pid, int sig)
{
	int			(*next) (pid_t, int) = dlsym(RTLD_NEXT, "kill");

	if (sig == SIGKILL)
		flush();
	return next(pid, sig);
}

/*
 * flush.c
 *	  Part of a module that is built with gcov's counters: tells kept.so how they are written.
 *
 * Counters are written at exit(); kept.so (kept.c) sees to those that end otherwise.
 */
#include <dlfcn.h>
#include <stddef.h>

extern void __gcov_dump(void);
extern void __gcov_reset(void);

static void
flush(void)
{
	__gcov_dump();
	__gcov_reset();
}

__attribute__((constructor)) static void
tell(void)
{
	void		(**kept) (void) = dlsym(RTLD_DEFAULT, "coverage_flush");

	if (kept != NULL)
		*kept = flush;
}

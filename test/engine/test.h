/*-------------------------------------------------------------------------
 *
 * test.h
 *	  The harness of the engine's tests: one program, TAP on its output.
 *
 * A test is a function without arguments; RUN(function) runs it and prints
 * "ok N - function" or "not ok N - function".  CHECK(condition) prints where
 * it failed and goes on, so that one run shows every failure; REQUIRE stops
 * the program, for conditions without which the rest cannot be run.  Both
 * may be used from any thread.  A forked child ends with test_child_exit(),
 * and its parent CHECKs that test_child_ok(pid) is true.
 *
 * Random numbers come from one seed, printed first and the same each time, unless
 * MOT_TEST_SEED gives another.
 *
 *	int
 *	main(int argc, char **argv)
 *	{
 *		test_begin(argc, argv);
 *		RUN(first);
 *		RUN(second);
 *		return test_end();
 *	}
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_TEST_H
#define MOT_TEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_int test_failed_checks;	/* of the test that runs now */
static int	test_count;
static int	test_failures;
static uint64_t test_seed;
static uint64_t test_random_state;

#define CHECK(cond) \
	do { \
		if (!(cond)) \
		{ \
			printf("# %s:%d: failed: %s\n", __FILE__, __LINE__, #cond); \
			fflush(stdout); \
			atomic_fetch_add(&test_failed_checks, 1); \
		} \
	} while (0)

#define REQUIRE(cond) \
	do { \
		if (!(cond)) \
		{ \
			printf("Bail out! %s:%d: %s\n", __FILE__, __LINE__, #cond); \
			fflush(stdout); \
			_exit(2); \
		} \
	} while (0)

#define RUN(function) test_run(#function, function)

/* splitmix64: a generator whose state is the caller's, one per thread */
static inline uint64_t
test_random_from(uint64_t *state)
{
	uint64_t	z = (*state +=UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* the main thread's random numbers */
static inline uint64_t
test_random(void)
{
	return test_random_from(&test_random_state);
}

static inline double
test_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double) ts.tv_sec + (double) ts.tv_nsec * 1e-9;
}

/* what this thread has worked: what is judged by it is not at the mercy of a busy machine */
static inline double
test_work_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double) ts.tv_sec + (double) ts.tv_nsec * 1e-9;
}

static inline void
test_begin(int argc, char **argv)
{
	const char *seed = getenv("MOT_TEST_SEED");

	(void) argc;
	(void) argv;
	test_seed = seed ? strtoull(seed, NULL, 0) : 1;
	test_random_state = test_seed;
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("# seed %llu\n", (unsigned long long) test_seed);
}

static inline void
test_run(const char *name, void (*function) (void))
{
	int			failed;

	atomic_store(&test_failed_checks, 0);
	function();
	failed = atomic_load(&test_failed_checks);
	printf("%sok %d - %s\n", failed ? "not " : "", ++test_count, name);
	if (failed)
		test_failures++;
}

static inline int
test_end(void)
{
	printf("1..%d\n", test_count);
	if (test_failures)
		printf("# %d of %d tests failed, seed %llu\n", test_failures, test_count,
			   (unsigned long long) test_seed);
	return test_failures ? 1 : 0;
}

/* the last thing a forked child does: tell the parent whether all was well */
static inline void
test_child_exit(void)
{
	fflush(stdout);
	_exit(atomic_load(&test_failed_checks) ? 1 : 0);
}

static inline bool
test_child_ok(pid_t pid)
{
	int			status;

	return waitpid(pid, &status, 0) == pid &&
		WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

#endif							/* MOT_TEST_H */

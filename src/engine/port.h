/*-------------------------------------------------------------------------
 *
 * port.h
 *	  The few machine primitives the engine stands on.
 *
 * The engine is plain C11: atomics come from <stdatomic.h>, and every place
 * that orders memory says beside it why.  What is gathered here is what the
 * language does not have: cache-line padding, a pause instruction, a small
 * spinlock that works between processes, and named stop points.
 *
 * A spinlock holder never sleeps, never calls out of the engine and never
 * raises an error, so a waiter spins briefly and then yields its processor
 * (on a machine with fewer cores than backends the holder may be the one
 * that is not running).  A process killed while holding one takes the whole
 * server's shared memory with it: the postmaster re-initialises, as it does
 * for its own spinlocks (src/backend/storage/lmgr/s_lock.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_PORT_H
#define MOT_PORT_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define MOT_CACHE_LINE 64
#define MOT_CACHE_ALIGNED _Alignas(MOT_CACHE_LINE)

#define mot_likely(x)	__builtin_expect((x) != 0, 1)
#define mot_unlikely(x) __builtin_expect((x) != 0, 0)
#define mot_prefetch(p) __builtin_prefetch(p)

/*
 * A fence.  gcc's thread sanitizer does not know C's, refuses to compile them, and
 * takes this for nothing: only what is atomic anyway may depend on it.
 */
#ifdef __SANITIZE_THREAD__
#define mot_fence(order)	__sync_synchronize()
#else
#define mot_fence(order)	atomic_thread_fence(order)
#endif

#define MOT_ALIGN_UP(x, a)	(((x) + ((a) - 1)) & ~((size_t) (a) - 1))
#define MOT_ALIGN_DOWN(x, a) ((x) & ~((size_t) (a) - 1))

#ifdef MOT_ASSERT
#include <stdio.h>
#include <stdlib.h>
#define mot_assert(c) \
	((c) ? (void) 0 : \
	 (fprintf(stderr, "%s:%d: engine assertion failed: %s\n", \
			  __FILE__, __LINE__, #c), abort()))
#else
#define mot_assert(c) ((void) 0)
#endif

/*
 * the compiler knows nothing of x's value from here on: where it would make a branch of what should
 * be none
 */
#define mot_opaque(x) __asm__("" : "+r"(x))

/* fetch a line that is about to be written; takes it from other processors' caches */
static inline void
mot_prefetch_write(const void *p)
{
#if defined(__x86_64__)
	/* compilers have it for newer models only; older ones take it as no-op */
__asm__ __volatile__("prefetchw %0"::"m"(*(const char *) p));
#else
	__builtin_prefetch(p, 1);
#endif
}

static inline void
mot_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
__asm__ __volatile__("isb":::"memory");
#endif
}

/* four bytes of a key, as its order has them */
static inline uint32_t
mot_load_be32(const unsigned char *p)
{
	uint32_t	x;

	memcpy(&x, p, 4);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	x = __builtin_bswap32(x);
#endif
	return x;
}

/*
 * Named stop points.  A test build (MOT_STOP_POINTS) calls the handler the
 * test installed; any other build compiles them to nothing.  The handler may
 * pause the caller, kill the process or schedule another thread.
 */
#ifdef MOT_STOP_POINTS
extern void (*mot_stop_point_handler) (const char *name);
#define MOT_STOP_POINT(name) \
	do { \
		if (mot_stop_point_handler) \
			mot_stop_point_handler(name); \
	} while (0)
#else
#define MOT_STOP_POINT(name) ((void) 0)
#endif

/*
 * One step of waiting for another process that needs only a few instructions
 * more: pause at first, then give the processor away, then sleep for a
 * little.  "spins" is the caller's counter, starting at zero.  Not inline:
 * whoever may wait, but nearly never does, is to stay short.
 */
static __attribute__((noinline, cold, unused))
void
mot_backoff(unsigned *spins)
{
	unsigned	n = (*spins)++;

	MOT_STOP_POINT("backoff");
	if (n < 64)
		mot_pause();
	else if (n < 1024)
		sched_yield();
	else
	{
		struct timespec ts = {0, 50 * 1000};

		nanosleep(&ts, NULL);
	}
}

typedef struct mot_spinlock
{
	atomic_uint word;			/* 0 free, 1 held */
} mot_spinlock;

static inline void
mot_spin_init(mot_spinlock *lock)
{
	atomic_init(&lock->word, 0);
}

static inline bool
mot_spin_try(mot_spinlock *lock)
{
	/* acquire: what the last holder wrote is visible to us */
	return atomic_load_explicit(&lock->word, memory_order_relaxed) == 0 &&
		atomic_exchange_explicit(&lock->word, 1, memory_order_acquire) == 0;
}

static inline void
mot_spin_lock(mot_spinlock *lock)
{
	unsigned	spins = 0;

	while (!mot_spin_try(lock))
		mot_backoff(&spins);
}

static inline void
mot_spin_unlock(mot_spinlock *lock)
{
	/* release: the next holder sees what we wrote */
	atomic_store_explicit(&lock->word, 0, memory_order_release);
}

/* a counter that one writes at a time, be it under a lock, and that is read without one */
static inline void
mot_add_to(_Atomic uint64_t *counter, int64_t n)
{
	/* relaxed: figures */
	atomic_store_explicit(counter,
						  atomic_load_explicit(counter, memory_order_relaxed) + (uint64_t) n,
						  memory_order_relaxed);
}

/*
 * Writes to cache lines that other processors write or read, too: a benchmark
 * build (MOT_COUNT_SHARED) counts them, any other build does not.
 */
#ifdef MOT_COUNT_SHARED
extern _Thread_local uint64_t mot_shared_writes;
#define mot_count_shared(n) (mot_shared_writes += (n))
#else
#define mot_count_shared(n) ((void) 0)
#endif

#endif							/* MOT_PORT_H */

/*-------------------------------------------------------------------------
 *
 * picture.h
 *	  The machine we run on, what there is to do on it, and what follows.
 *
 * The idea is COD's (Giceva et al., CIDR 2013): a database asks what the
 * machine can give, at the moment, instead of guessing.  Three things are known:
 *
 *	mot_picture		what the machine consists of: CPUs, their cores, nodes and
 *					caches, read once with hwloc (picture.c)
 *	mot_usage		what its CPUs are doing, and for whom: two readings of their
 *					counters apart (usage.c); what the control group allows
 *					(limits.c)
 *	mot_judgement	which of the CPUs are of use to us, and why others are not;
 *					suggestions follow from it (advice.c)
 *
 * These files are plain C without PostgreSQL's headers, and what they are to judge is
 * handed to them: tests give them machines that hwloc makes up and loads that were
 * recorded.  machine.h is the room's other half, which looks at the machine that
 * there is and acts.
 *
 * CPUs go by the system's numbers, nodes by the engine's (engine/topology.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_MACHINE_PICTURE_H
#define MOT_MACHINE_PICTURE_H

#include "engine/memory/topology.h"

/*---- picture.c ----*/

#define MOT_CACHE_LEVELS 5

typedef struct mot_cpu
{
	bool		known;			/* ours to have when the picture was made */
	int			node;			/* the engine's number; -1: not known */
	int			core;			/* -1: not known */
	int			cache[MOT_CACHE_LEVELS + 1];	/* the one it uses, by level,
												 * for data; -1: none */
} mot_cpu;

typedef struct mot_picture
{
	unsigned	cpus;			/* entries, by the system's numbers; some may
								 * be of no CPU */
	unsigned	nodes;
	bool		real;			/* this machine: its counters mean these CPUs */
	uint64_t	cache_bytes[MOT_CACHE_LEVELS + 1];	/* of one, the smallest;
													 * 0: there are none */
	uint64_t	node_bytes[MOT_MAX_NODES];	/* memory; 0: not known */
	uint16_t	distance[MOT_MAX_NODES][MOT_MAX_NODES];
	mot_cpu		cpu[];
} mot_picture;

/*
 * malloc'd; NULL: no memory.  what: NULL for this machine (or what hwloc's
 * environment says); else hwloc's synthetic description, or XML.  NULL, too, if
 * that is none.
 */
extern mot_picture *mot_picture_read(const char *what);

/*---- usage.c ----*/

typedef struct mot_cpu_usage
{
	uint64_t	busy,			/* ticks, at the last reading */
				idle,
				new_busy,		/* at the one that is being taken */
				new_idle;
	double		ours_us;		/* of our processes since the last one */
	float		others,			/* 0 to 1: processors' time used by others */
				ours;			/* ... and by us */
	bool		seen,			/* in the reading that is being taken */
				online,			/* in the last one */
				allowed;		/* to us, by cpuset and affinity */
} mot_cpu_usage;

typedef struct mot_usage
{
	unsigned	cpus;
	unsigned	intervals;		/* 0: nothing is known yet */
	unsigned	hz;				/* ticks a second */
	double		at;				/* seconds, of the last reading; < 0: none */
	double		anywhere_us;	/* of our processes since then, who knows on
								 * which CPU */
	double		limit;			/* processors the control group allows; 0: any */
	double		limit_others;	/* that others in it use */
	mot_cpu_usage cpu[];
} mot_usage;

extern size_t mot_usage_size(unsigned cpus);
extern void mot_usage_init(mot_usage *usage, unsigned cpus, unsigned hz);

/*
 * A reading is the text of /proc/stat, or the part that begins with the CPUs;
 * what processes of ours have used since the last one, by CPU (cpu < 0: not
 * known); then its end, in seconds of whatever clock.
 */
extern void mot_usage_stat(mot_usage *usage, const char *text);
extern void mot_usage_ours(mot_usage *usage, int cpu, double us);
extern void mot_usage_end(mot_usage *usage, double seconds);

/*
 * Readings one after the other, as they were recorded: lines of /proc/stat, "ours
 * CPU MICROSECONDS", "allowed FIRST LAST", "limit PROCESSORS" behind a line "at
 * SECONDS" each.  False: it is not of that form.
 */
extern bool mot_usage_replay(mot_usage *usage, const char *text);

/*---- limits.c ----*/

typedef struct mot_limits
{
	uint64_t	memory;			/* bytes; UINT64_MAX: none */
	uint64_t	huge;			/* bytes in pages of 2 MB */
	double		cpus;			/* processors; 0: none */
	double		used;			/* seconds of processors that the group with
								 * that limit has used; < 0: not known */
} mot_limits;

/* root: in front of /proc and /sys, for tests; else "" */
extern void mot_limits_read(mot_limits *limits, const char *root);

/*
 * share of time, 0 to 1, that somebody waited for "cpu", "memory" or "io" of late; < 0: not known
 */
extern double mot_pressure_read(const char *what, const char *root);

/*---- advice.c ----*/

typedef enum mot_cpu_use
{
	MOT_CPU_USABLE,
	MOT_CPU_NONE,				/* there is no such CPU */
	MOT_CPU_OFFLINE,
	MOT_CPU_OUTSIDE,			/* of what we may use */
	MOT_CPU_BUSY,				/* with others */
	MOT_CPU_SIBLING,			/* of its core's other threads one is */
	MOT_CPU_SYSTEM				/* left to the system */
} mot_cpu_use;

typedef struct mot_judgement
{
	unsigned	cpus;			/* of the picture */
	unsigned	allowed;		/* CPUs that we may use */
	unsigned	ours;			/* processors: no more than that, and than the
								 * control group's limit */
	unsigned	usable;			/* of the CPUs are worth it; at least 1 */
	unsigned	most;			/* processes that find a processor at a time */
	double		free;			/* processors that others do not use */
	uint8_t		use[MOT_MAX_CPUS];	/* mot_cpu_use */
} mot_judgement;

typedef enum mot_work_bound
{
	MOT_BOUND_COMPUTE, MOT_BOUND_MEMORY
} mot_work_bound;

typedef struct mot_place
{
	int			cpu;
	int			node;
	char		why[160];
} mot_place;

extern void mot_judge(mot_judgement *judgement, const mot_picture *picture, const mot_usage *usage);

/* why a CPU is not used; "" if it is */
extern void mot_judgement_why(char *why, size_t size, unsigned cpu, const mot_judgement *judgement,
							  const mot_picture *picture, const mot_usage *usage);

/* how many parts to make of so much data, to be worked on at the same time */
extern unsigned mot_suggest_number(char *why, size_t size, uint64_t bytes, mot_work_bound bound,
								   const mot_judgement *judgement,
								   const mot_picture *picture, const mot_usage *usage);

/* where parts of so many bytes each are to be, and the processes that work on them */
extern void mot_suggest_places(mot_place *places, unsigned partitions, uint64_t bytes,
							   mot_work_bound bound, bool share_cache,
							   const mot_judgement *judgement,
							   const mot_picture *picture, const mot_usage *usage);

#endif							/* MOT_MACHINE_PICTURE_H */

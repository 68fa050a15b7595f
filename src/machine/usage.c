/*-------------------------------------------------------------------------
 *
 * usage.c
 *	  What the CPUs are doing, and for whom.
 *
 * The rate at which a CPU's run time changes between two readings of /proc/stat
 * is how busy it is; what a hypervisor takes (steal) is busy, too.  What processes
 * of ours have used meanwhile is ours, the rest is others'.
 *
 * How much our processes have used is known exactly, on which CPU only as far as
 * they did not move: each is taken to have run where it ran last.  A CPU
 * cannot have done more for us than it has done at all; what is too much there
 * was done on others, which share it by what is left unexplained of theirs.
 * So the sum is right, and what it is on each CPU nearly.
 *
 * What is told is the mean of the last interval and what was told before, so a
 * neighbour of a moment counts half, and one that stays is known after two or three.
 *
 *-------------------------------------------------------------------------
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/picture.h"

static double work_of(const mot_cpu_usage *c, double seconds, unsigned hz);
static void smooth(float *value, double now, bool first);

size_t
mot_usage_size(unsigned cpus)
{
	return offsetof(mot_usage, cpu) + cpus * sizeof(mot_cpu_usage);
}

void
mot_usage_init(mot_usage *usage, unsigned cpus, unsigned hz)
{
	memset(usage, 0, mot_usage_size(cpus));
	usage->cpus = cpus;
	usage->hz = hz > 0 ? hz : 100;
	usage->at = -1;
	/* until we know better */
	for (unsigned c = 0; c < cpus; c++)
		usage->cpu[c].online = usage->cpu[c].allowed = true;
}

static const char *
next_line(const char *line)
{
	line = strchr(line, '\n');
	return line != NULL ? line + 1 : NULL;
}

/* "cpu3 user nice system idle iowait irq softirq steal ..."; guests' time is in user's */
void
mot_usage_stat(mot_usage *usage, const char *line)
{
	while (line != NULL && strncmp(line, "cpu", 3) == 0)
	{
		if (isdigit((unsigned char) line[3]))
		{
			char	   *at;
			unsigned long number = strtoul(line + 3, &at, 10);
			uint64_t	t[8] = {0};
			int			n = 0;

			while (n < 8 && *at == ' ')
				t[n++] = strtoull(at, &at, 10);
			if (number < usage->cpus && n >= 4)
			{
				mot_cpu_usage *c = &usage->cpu[number];

				c->new_busy = t[0] + t[1] + t[2] + t[5] + t[6] + t[7];
				c->new_idle = t[3] + t[4];
				c->seen = true;
			}
		}
		line = next_line(line);
	}
}

void
mot_usage_ours(mot_usage *usage, int cpu, double us)
{
	if (cpu >= 0 && (unsigned) cpu < usage->cpus)
		usage->cpu[cpu].ours_us += us;
	else
		usage->anywhere_us += us;
}

void
mot_usage_end(mot_usage *usage, double seconds)
{
	double		passed = seconds - usage->at;
	bool		known = usage->at >= 0 && passed > 0;
	bool		first = usage->intervals == 0;
	double		elsewhere = usage->anywhere_us / 1e6;
	double		unexplained = 0;
	double		part;

	for (unsigned i = 0; known && i < usage->cpus; i++)
	{
		mot_cpu_usage *c = &usage->cpu[i];
		double		work = work_of(c, passed, usage->hz);
		double		ours = c->ours_us / 1e6;

		if (ours > work)
		{
			elsewhere += ours - work;
			c->ours_us = work * 1e6;
			ours = work;
		}
		unexplained += work - ours;
	}
	part = unexplained > 0 ? elsewhere / unexplained : 0;
	if (part > 1)
		part = 1;

	for (unsigned i = 0; i < usage->cpus; i++)
	{
		mot_cpu_usage *c = &usage->cpu[i];

		if (known)
		{
			double		work = work_of(c, passed, usage->hz);
			double		ours = c->ours_us / 1e6;

			ours += (work - ours) * part;
			smooth(&c->others, (work - ours) / passed, first || !c->online);
			smooth(&c->ours, ours / passed, first || !c->online);
		}
		c->busy = c->new_busy;
		c->idle = c->new_idle;
		c->online = c->seen;
		c->seen = false;
		c->ours_us = 0;
	}
	usage->anywhere_us = 0;
	usage->at = seconds;
	if (known)
		usage->intervals++;
}

/*
 * Seconds that a CPU has worked.  Its ticks are not counted in lockstep with the clock, so
 * their ratio is what counts; but for a CPU that counts few (it has no tick), or
 * whose idle time goes back (iowait does that).
 */
static double
work_of(const mot_cpu_usage *c, double seconds, unsigned hz)
{
	double		busy = (double) c->new_busy - (double) c->busy;
	double		idle = (double) c->new_idle - (double) c->idle;
	double		all;

	if (!c->seen || !c->online || busy <= 0)
		return 0;
	all = busy + (idle > 0 ? idle : 0);
	if (all < seconds * hz / 2)
		all = seconds * hz;
	return busy >= all ? seconds : busy / all * seconds;
}

static void
smooth(float *value, double now, bool first)
{
	*value = (float) (first ? now : (*value + now) / 2);
}

bool
mot_usage_replay(mot_usage *usage, const char *line)
{
	double		at = -1;

	while (line != NULL && *line != '\0')
	{
		unsigned	a,
					b;
		double		value;

		if (sscanf(line, "at %lf", &value) == 1)
		{
			if (at >= 0)
				mot_usage_end(usage, at);
			at = value;
		}
		else if (at < 0)
			return false;
		else if (sscanf(line, "ours %u %lf", &a, &value) == 2)
			mot_usage_ours(usage, (int) a, value);
		else if (sscanf(line, "allowed %u %u", &a, &b) == 2)
			for (unsigned c = 0; c < usage->cpus; c++)
				usage->cpu[c].allowed = c >= a && c <= b;
		else if (sscanf(line, "limit %lf", &value) == 1)
			usage->limit = value;
		else if (strncmp(line, "cpu", 3) == 0)
		{
			/* all that follow one another */
			mot_usage_stat(usage, line);
			while (line != NULL && strncmp(line, "cpu", 3) == 0)
				line = next_line(line);
			continue;
		}
		else if (*line != '#' && *line != '\n')
			return false;
		line = next_line(line);
	}
	if (at >= 0)
		mot_usage_end(usage, at);
	return at >= 0;
}

/*-------------------------------------------------------------------------
 *
 * place.c
 *	  Which CPUs a process of ours keeps to.
 *
 * Processes that work for long keep to CPUs that are usable (advice.c), of one node
 * where there are several.  The kernel moves them among these as it likes.  Once
 * the judgement of some CPU changes, each looks again.  If all that we may use is usable, there
 * is nothing to keep away from, and where there is one node they are as
 * they were.
 *
 * It never is an error: if the kernel refuses, because the CPUs have gone or a container
 * forbids it, the process remains where it is.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sched.h>

#include "machine/machine.h"
#include "machine/place.h"
#include "miscadmin.h"

typedef unsigned long CpuMask[MOT_MAX_CPUS / (8 * sizeof(unsigned long))];

static int	my_number = -1;		/* -1: not placed */
static uint32 my_changes = 0;	/* as of which the CPUs are chosen */
static bool bound = false;		/* to less than the server */

static void choose(void);
static int	my_node(const MotMachine *machine);

void
MotMachinePlace(int n)
{
	/* in single-user mode there is nobody to tell what to go back to */
	if (!IsUnderPostmaster)
		return;
	my_number = n;
	choose();
}

void
MotMachineStay(void)
{
	if (my_number < 0)
		return;
	MotMachineSample();
	if (mot_adviser ? unlikely(my_changes != MotMachineChanges()) : bound)
		choose();
}

/* as the postmaster is, whatever has become of that */
void
MotMachineLeave(void)
{
	CpuMask		mask = {0};

	my_number = -1;
	if (!bound)
		return;
	bound = false;
	if (sched_getaffinity(PostmasterPid, sizeof(mask), (cpu_set_t *) mask) == 0)
		(void) sched_setaffinity(0, sizeof(mask), (cpu_set_t *) mask);
}

static void
choose(void)
{
	int			number = my_number;
	MotMachine *machine;
	CpuMask		mask = {0};
	int			node;
	unsigned	chosen = 0;

	my_changes = MotMachineChanges();
	if (my_changes == 0 || !mot_adviser)
	{
		my_changes = 0;
		MotMachineLeave();
		my_number = number;
		return;
	}

	machine = MotMachineHere();
	node = my_node(machine);
	for (unsigned c = 0; c < machine->judgement.cpus; c++)
		if (machine->judgement.use[c] == MOT_CPU_USABLE &&
			(node < 0 || machine->picture->cpu[c].node == node))
		{
			CPU_SET_S(c, sizeof(mask), (cpu_set_t *) mask);
			chosen++;
		}
	if (chosen == 0 || chosen == machine->judgement.allowed)
	{
		MotMachineLeave();
		my_number = number;
	}
	else if (sched_setaffinity(0, sizeof(mask), (cpu_set_t *) mask) == 0)
		bound = true;
	pfree(machine->usage);
	pfree(machine);
}

/* that of my place, where there are several; else -1 */
static int
my_node(const MotMachine *machine)
{
	mot_place  *places;
	int			node;

	if (machine->picture->nodes == 1)
		return -1;
	/* what comes after mine makes no difference to it */
	places = palloc((my_number + 1) * sizeof(mot_place));
	mot_suggest_places(places, my_number + 1, 0, MOT_BOUND_MEMORY, false,
					   &machine->judgement, machine->picture, machine->usage);
	node = places[my_number].node;
	pfree(places);
	return node;
}

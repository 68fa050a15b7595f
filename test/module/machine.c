/*-------------------------------------------------------------------------
 *
 * machine.c
 *	  Machines that are not this one, for tests of what is suggested on them.
 *
 * The extension's script does not declare it; sql/machine.sql does.
 *
 *	mot_test_machine(what, readings)
 *							for this session the machine is what hwloc takes for
 *							"what" (synthetic, or XML), with a load as it was recorded
 *							(see mot_usage_replay); null: the one that is there
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/export.h"
#include "fmgr.h"
#include "machine/machine.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(mot_test_machine);

Datum
mot_test_machine(PG_FUNCTION_ARGS)
{
	MotMachine *machine;

	MotMachineInstead = NULL;
	if (PG_ARGISNULL(0))
		PG_RETURN_VOID();
	machine = MemoryContextAllocZero(TopMemoryContext, sizeof(MotMachine));
	machine->picture = mot_picture_read(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	if (machine->picture == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("hwloc cannot make up such a machine")));
	machine->usage = MemoryContextAlloc(TopMemoryContext, mot_usage_size(machine->picture->cpus));
	mot_usage_init(machine->usage, machine->picture->cpus, 100);
	if (!PG_ARGISNULL(1) && !mot_usage_replay(machine->usage, text_to_cstring(PG_GETARG_TEXT_PP(1))))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("these are no readings of a machine's load")));
	mot_judge(&machine->judgement, machine->picture, machine->usage);
	MotMachineInstead = machine;
	PG_RETURN_VOID();
}

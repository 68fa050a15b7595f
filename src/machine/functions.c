/*-------------------------------------------------------------------------
 *
 * functions.c
 *	  What SQL sees of the machine: its CPUs, and what is suggested.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "compat/export.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "machine/machine.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(mot_stat_get_cpus);
PG_FUNCTION_INFO_V1(mot_stat_get_machine);
PG_FUNCTION_INFO_V1(mot_cache_size);
PG_FUNCTION_INFO_V1(mot_suggest_partitions);
PG_FUNCTION_INFO_V1(mot_suggest_placement);

#define MAX_PARTITIONS 65536

static Datum shared_caches(const mot_picture *picture, unsigned cpu, bool *null);

/* ------------------------------------------------------------------- views */

/* in percent */
static Datum
percent(double part)
{
	return Float4GetDatum((float4) (rint(part * 1000) / 10));
}

Datum
mot_stat_get_cpus(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	MotMachine *machine = MotMachineLook();

	InitMaterializedSRF(fcinfo, 0);
	for (unsigned c = 0; c < machine->judgement.cpus; c++)
	{
		const mot_cpu *cpu = &machine->picture->cpu[c];
		const mot_cpu_usage *usage = &machine->usage->cpu[c];
		bool		seen = usage->online && machine->usage->intervals > 0;
		Datum		values[8];
		bool		nulls[8] = {0};
		char		why[160];

		if (machine->judgement.use[c] == MOT_CPU_NONE)
			continue;
		mot_judgement_why(why, sizeof(why), c, &machine->judgement, machine->picture, machine->usage);
		values[0] = Int32GetDatum((int) c);
		values[1] = Int32GetDatum(cpu->node);
		nulls[1] = cpu->node < 0;
		values[2] = Int32GetDatum(cpu->core);
		nulls[2] = cpu->core < 0;
		values[3] = shared_caches(machine->picture, c, &nulls[3]);
		values[4] = percent(usage->others);
		values[5] = percent(usage->ours);
		nulls[4] = nulls[5] = !seen;
		values[6] = BoolGetDatum(machine->judgement.use[c] == MOT_CPU_USABLE);
		values[7] = CStringGetTextDatum(why);
		nulls[7] = why[0] == '\0';
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* "L2 0-1, L3 0-7": who uses the caches that a CPU does not have for itself */
static Datum
shared_caches(const mot_picture *picture, unsigned cpu, bool *null)
{
	StringInfoData s;

	initStringInfo(&s);
	for (int level = 1; level <= MOT_CACHE_LEVELS; level++)
	{
		int			cache = picture->cpu[cpu].cache[level];
		int			from = s.len;
		unsigned	n = 0;

		if (cache < 0)
			continue;
		appendStringInfo(&s, "%sL%d ", from > 0 ? ", " : "", level);
		for (unsigned first = 0; first < picture->cpus; first++)
		{
			unsigned	last = first;

			if (picture->cpu[first].cache[level] != cache)
				continue;
			while (last + 1 < picture->cpus && picture->cpu[last + 1].cache[level] == cache)
				last++;
			appendStringInfo(&s, first == last ? "%s%u" : "%s%u-%u", n > 0 ? "," : "", first, last);
			n += last - first + 1;
			first = last;
		}
		if (n == 1)
		{
			s.len = from;
			s.data[from] = '\0';
		}
	}
	*null = s.len == 0;
	return CStringGetTextDatum(s.data);
}

Datum
mot_stat_get_machine(PG_FUNCTION_ARGS)
{
	static const char *const waits[] = {"cpu", "memory", "io"};
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	MotMachine *machine = MotMachineLook();
	const mot_judgement *judgement = &machine->judgement;
	Datum		values[10];
	bool		nulls[10] = {0};

	InitMaterializedSRF(fcinfo, 0);
	values[0] = Int32GetDatum((int) judgement->allowed);
	values[1] = Int32GetDatum((int) judgement->usable);
	values[2] = Float4GetDatum((float4) machine->usage->limit);
	nulls[2] = machine->usage->limit <= 0;
	values[3] = Float4GetDatum((float4) (rint(judgement->free * 100) / 100));
	values[4] = Int32GetDatum((int) machine->picture->nodes);
	values[5] = Int64GetDatum((int64) MotMachineMemory());
	nulls[5] = !machine->picture->real;
	for (int i = 0; i < 3; i++)
	{
		double		part = machine->picture->real ? mot_pressure_read(waits[i], "") : -1;

		values[6 + i] = percent(part);
		nulls[6 + i] = part < 0;
	}
	values[9] = Int64GetDatum(machine->usage->intervals);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	return (Datum) 0;
}

/* ------------------------------------------------------------- suggestions */

/* null: there is no such cache */
Datum
mot_cache_size(PG_FUNCTION_ARGS)
{
	int			level = PG_GETARG_INT32(0);
	MotMachine *machine = MotMachineLook();

	if (level < 1 || level > MOT_CACHE_LEVELS || machine->picture->cache_bytes[level] == 0)
		PG_RETURN_NULL();
	PG_RETURN_INT64((int64) machine->picture->cache_bytes[level]);
}

static mot_work_bound
bound_by(text *name)
{
	char	   *bound = text_to_cstring(name);

	if (pg_strcasecmp(bound, "compute") == 0)
		return MOT_BOUND_COMPUTE;
	if (pg_strcasecmp(bound, "memory") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid bound of work: \"%s\"", bound),
				 errhint("Work is bound by \"compute\" or by \"memory\".")));
	return MOT_BOUND_MEMORY;
}

static uint64
checked_bytes(int64 bytes)
{
	if (bytes < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of bytes must not be negative")));
	return (uint64) bytes;
}

Datum
mot_suggest_partitions(PG_FUNCTION_ARGS)
{
	uint64		bytes = checked_bytes(PG_GETARG_INT64(0));
	mot_work_bound bound = bound_by(PG_GETARG_TEXT_PP(1));
	MotMachine *machine = MotMachineLook();
	TupleDesc	desc;
	Datum		values[2];
	bool		nulls[2] = {0};
	char		why[1024];

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = Int32GetDatum((int) mot_suggest_number(why, sizeof(why), bytes, bound, &machine->judgement,
													   machine->picture, machine->usage));
	values[1] = CStringGetTextDatum(why);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

Datum
mot_suggest_placement(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	int			partitions = PG_GETARG_INT32(0);
	uint64		bytes = checked_bytes(PG_GETARG_INT64(1));
	mot_work_bound bound = bound_by(PG_GETARG_TEXT_PP(2));
	bool		share_cache = PG_GETARG_BOOL(3);
	MotMachine *machine = MotMachineLook();
	mot_place  *places;

	if (partitions < 1 || partitions > MAX_PARTITIONS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of partitions must be between 1 and %d", MAX_PARTITIONS)));

	InitMaterializedSRF(fcinfo, 0);
	places = palloc(partitions * sizeof(mot_place));
	mot_suggest_places(places, (unsigned) partitions, bytes, bound, share_cache, &machine->judgement,
					   machine->picture, machine->usage);
	for (int p = 0; p < partitions; p++)
	{
		Datum		values[4];
		bool		nulls[4] = {0};

		CHECK_FOR_INTERRUPTS();
		values[0] = Int32GetDatum(p + 1);
		values[1] = Int32GetDatum(places[p].cpu);
		nulls[1] = places[p].cpu < 0;
		values[2] = Int32GetDatum(places[p].node);
		nulls[2] = places[p].node < 0;
		values[3] = CStringGetTextDatum(places[p].why);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

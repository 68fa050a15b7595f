/*-------------------------------------------------------------------------
 *
 * nodes.c
 *	  The machine as islands see it: its nodes, and what they cost each other.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "islands/measure.h"
#include "machine/picture.h"

/*
 * What a line from another node takes beside what it takes at home, and
 * what the server takes for a row that is read: the unit of work.  (A line: the
 * difference that mlc and others measure between sockets; a row: bench-statements'
 * look-ups in a function.)
 */
#define REMOTE_LINE_NS 100.0
#define ROW_READ_NS 1000.0
#define LINE_BYTES 64

/*
 * Sessions keep to a node's processors softly, and most are not kept anywhere: the
 * system evens out what ranges do not.  So unevenness costs a part only.
 */
#define USE_WORK 0.05

/* rows are moved once, and worked on all the time */
#define WORTH 0.005

/*
 * Nodes as places that can do as much as they have processors.  Distances are 0 to
 * oneself and 1 where a line takes twice as long.
 */
bool
MotIslandsMachine(isl_machine *machine)
{
	mot_picture *picture = mot_picture_read(NULL);
	bool		real;

	memset(machine, 0, sizeof(*machine));
	machine->byte_work = REMOTE_LINE_NS / LINE_BYTES / ROW_READ_NS;
	machine->use_work = USE_WORK;
	machine->worth = WORTH;
	machine->nodes = machine->places = picture == NULL ? 1 : picture->nodes;
	machine->place[0].weight = 1;
	if (picture == NULL)
		return false;
	for (unsigned a = 0; a < picture->nodes; a++)
	{
		uint16_t   *distance = picture->distance[a];

		machine->place[a].node = a;
		machine->place[a].weight = 0;
		for (unsigned b = 0; b < picture->nodes; b++)
			machine->distance[a][b] = a == b || distance[a] == 0 ? 0 : Max((double) distance[b] / distance[a] - 1, 0);
	}
	for (unsigned c = 0; c < picture->cpus; c++)
		if (picture->cpu[c].known && picture->cpu[c].node >= 0)
			machine->place[picture->cpu[c].node].weight++;
	real = picture->real;
	free(picture);
	return real;
}

/*-------------------------------------------------------------------------
 *
 * remember.c
 *	  Plans of statements that nobody has prepared.
 *
 * Scripts, poolers and many frameworks send each statement as text with its values in it, or as an
 * unnamed one that is forgotten at once.  Of what the server does for such a statement on a
 * MOT table, planning is about half; it cannot be left out but by who remembers the plan.  So
 * the planner's hook does: what is the same but for its constants (constants.c) is the
 * same statement, which has one generic plan, and one program, as if somebody had prepared it.
 *
 * What is remembered.  The rewritten query, its constants replaced by parameters, is compared as a
 * whole (equal()); names, schemas, types and views are resolved in it already, and whatever
 * cannot be compared that way is not remembered: row-level security, functions in SQL, which are inlined as the
 * search path is at that time.  Only statements of one MOT table whose plan finds at
 * most one row, by a unique key, or that insert rows: no constant would have another plan there, and rows that
 * come or go make no other plan better.  The rest is planned as ever, each time.
 *
 * What is returned.  The server copies a plan before it keeps it for an unnamed statement, and gives a
 * simple query no parameters.  So planning hands out a small plan (a "slip") which says what a client wants to know:
 * columns, tables to lock, dependencies.  It has one node of ours, with a reference to
 * what is remembered and this execution's values.  When the executor starts (run.c), the plan
 * itself and the values take its place, and all that follows is as for a prepared statement: the
 * first executions by the server's nodes, then by a program, which is known by the plan's address.
 *
 * How long.  Plans go when the plan cache would let go of them (invalidations of their table, functions, types and so
 * on), and the longest unused when all of them need more than mot.remember_memory.  What a slip refers to stays for as
 * long as the slip: its node counts references when it is copied, and a callback of its memory takes
 * them back.
 *
 * Only at the top level: a client's message, not EXPLAIN, cursors, functions or prepared statements, which keep
 * plans themselves or want to see one.
 *
 *-------------------------------------------------------------------------
 */

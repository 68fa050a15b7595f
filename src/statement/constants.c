/*-------------------------------------------------------------------------
 *
 * constants.c
 *	  What a statement is without its constants.
 *
 * A query's constants are replaced by parameters at those places where the planner makes no more of them
 * than values that are computed with when the statement is executed: compared with
 * a column in a condition that has to hold, assigned to a column, or inserted; there also as an operand beside a column.
 * What the planner would compute from constants alone is computed here, since that may fail, and
 * fails before anything is executed: calls of the server's own strict and immutable functions.  A parameter that a
 * client has sent is taken as the constant that it is to the planner.  All other constants
 * stay, and make another statement: nulls, truth values, LIMIT, what is selected.
 *
 *-------------------------------------------------------------------------
 */

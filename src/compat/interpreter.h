/*-------------------------------------------------------------------------
 *
 * interpreter.h
 *	  What PL/pgSQL's interpreter calls differently in its versions.
 *
 * (Who includes this raises errors with PL/pgSQL's texts: its header says so.)
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_INTERPRETER_H
#define MOT_INTERPRETER_H

#include "postgres.h"

#include "plpgsql.h"

/* how many activations of a function there are */
#if PG_VERSION_NUM >= 180000
#define MotFunctionUses(function) ((function)->cfunc.use_count)
#else
#define MotFunctionUses(function) ((function)->use_count)
#endif

/*
 * Has somebody asked for extra checks (plpgsql.extra_errors, extra_warnings)?  In a function of
 * PL/pgSQL only.
 */
extern bool MotInterpreterChecks(void);

#endif							/* MOT_INTERPRETER_H */

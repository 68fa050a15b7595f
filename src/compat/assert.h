/*-------------------------------------------------------------------------
 *
 * assert.h
 *	  Where server versions differ: whom a failed assertion calls.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_ASSERT_H
#define MOT_ASSERT_H

#include "postgres.h"

/*
 * the head of its definition, for programs without a server (from 16 on there is no kind of error)
 */
#if PG_VERSION_NUM >= 160000
#define MotExceptionalCondition(condition, file, line) \
	ExceptionalCondition(const char *condition, const char *file, int line)
#else
#define MotExceptionalCondition(condition, file, line) \
	ExceptionalCondition(const char *condition, const char *kind, const char *file, int line)
#endif

#endif							/* MOT_ASSERT_H */

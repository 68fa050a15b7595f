/*-------------------------------------------------------------------------
 *
 * errors.h
 *	  What LLVM does when it cannot go on.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_JIT_ERRORS_H
#define MOT_JIT_ERRORS_H

/*
 * Between enter and leave, running out of memory inside LLVM or the C++ library
 * and LLVM's fatal errors end in mot_jit_fatal, which must not return.
 */
extern void mot_jit_enter(void);
extern void mot_jit_leave(void);

/* defined by the user of this file; "reason" may be NULL */
extern void mot_jit_fatal(const char *reason, int out_of_memory);

#endif							/* MOT_JIT_ERRORS_H */

/*-------------------------------------------------------------------------
 *
 * versions.h
 *	  Where versions of LLVM differ.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_JIT_VERSIONS_H
#define MOT_JIT_VERSIONS_H

#include <llvm/Config/llvm-config.h>

/*
 * From 18 on the pass makes sure that a second round of it would change nothing, and ends the
 * process if it would.  One round is what is wanted.
 */
#if LLVM_VERSION_MAJOR >= 18
#define MOT_PASS_INSTCOMBINE "instcombine<no-verify-fixpoint>"
#else
#define MOT_PASS_INSTCOMBINE "instcombine"
#endif

#endif							/* MOT_JIT_VERSIONS_H */

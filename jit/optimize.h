/*-------------------------------------------------------------------------
 *
 * optimize.h
 *	  How much LLVM thinks about a program.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_JIT_OPTIMIZE_H
#define MOT_JIT_OPTIMIZE_H

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

/*
 * The fast selection, but on ARM, where LLVM has another one at that level, which reaches constants
 * over 4 GB at most, whatever the code model says: see make_machine.
 */
#ifdef __aarch64__
#define MOT_CODEGEN_LEVEL LLVMCodeGenLevelLess
#else
#define MOT_CODEGEN_LEVEL LLVMCodeGenLevelNone
#endif

extern void MotSetTarget(LLVMModuleRef module, LLVMTargetMachineRef machine);
extern void MotOptimize(LLVMModuleRef module, LLVMTargetMachineRef machine);

#endif							/* MOT_JIT_OPTIMIZE_H */

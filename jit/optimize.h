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

#define MOT_CODEGEN_LEVEL LLVMCodeGenLevelNone

extern void MotSetTarget(LLVMModuleRef module, LLVMTargetMachineRef machine);
extern void MotOptimize(LLVMModuleRef module, LLVMTargetMachineRef machine);

#endif							/* MOT_JIT_OPTIMIZE_H */

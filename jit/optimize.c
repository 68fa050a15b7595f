/*-------------------------------------------------------------------------
 *
 * optimize.c
 *	  How much LLVM thinks about a program.
 *
 * Programs are written in the form that passes would bring them to (values in
 * registers, few branches), so a few cheap passes over the function are all
 * that pays: constants folded, what several expressions load loaded once,
 * blocks joined.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimize.h"

#include <llvm-c/Transforms/PassBuilder.h>

#define PASSES "function(early-cse,instcombine,simplifycfg,early-cse,simplifycfg)"

void
MotSetTarget(LLVMModuleRef module, LLVMTargetMachineRef machine)
{
	LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
	char	   *triple = LLVMGetTargetMachineTriple(machine);

	LLVMSetModuleDataLayout(module, layout);
	LLVMSetTarget(module, triple);
	LLVMDisposeMessage(triple);
	LLVMDisposeTargetData(layout);
}

void
MotOptimize(LLVMModuleRef module, LLVMTargetMachineRef machine)
{
	LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
	LLVMErrorRef error = LLVMRunPasses(module, PASSES, machine, options);

	/* a program that is not optimized is as right */
	if (error)
		LLVMConsumeError(error);
	LLVMDisposePassBuilderOptions(options);
}

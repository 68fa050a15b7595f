/*-------------------------------------------------------------------------
 *
 * optimize.c
 *	  How much LLVM thinks about a program.
 *
 * Programs are written in the form that passes would bring them to (values in
 * registers, few branches), so a few cheap passes over the function are all
 * that pays: what several expressions load is loaded once, constants are
 * folded, blocks joined.
 *
 * Machine code is made by LLVM's fast instruction selection.  Compared with
 * its first level of optimization a program takes 3 to 4 ns more a row, and a
 * third of the time to compile (1 to 2 ms instead of 3 to 6), which half a
 * million rows would not win back.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimize.h"
#include "versions.h"

#include <llvm-c/Transforms/PassBuilder.h>

#define PASSES "function(early-cse," MOT_PASS_INSTCOMBINE ",simplifycfg)"

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

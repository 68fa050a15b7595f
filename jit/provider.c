/*-------------------------------------------------------------------------
 *
 * provider.c
 *	  The library's face; LLVM's instance in this session.
 *
 * One LLJIT instance a session holds the code of all programs.  Each program
 * is built in an LLVM context of its own, which goes when it has become machine
 * code, so that nothing grows with the number of programs compiled; the
 * machine code goes with its resource tracker.
 *
 * The server's JIT may be in the same process, with the same copy of LLVM.
 * Everything here is in instances of our own, initializing targets is
 * idempotent, and no process-wide option is set.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/OrcEE.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include "emit.h"
#include "errors.h"
#include "fmgr.h"
#include "optimize.h"
#include "portability/instr_time.h"
#include "procedure/program.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

PG_MODULE_MAGIC;

/* what one program keeps; MotRowCode.private */
typedef struct Code
{
	MotRowCode	public;
	MemoryContext cxt;
	LLVMOrcResourceTrackerRef tracker;
	size_t		bytes;			/* all of this, and pages of machine code */
	char	   *text;			/* NULL: not kept */
} Code;

static LLVMOrcLLJITRef lljit;
static LLVMTargetMachineRef machine;	/* for making code; the instance has
										 * its own */
static uint64 programs;			/* for names */
static size_t bytes_used;		/* by all programs */
PGFunction	(*MotSooner) (Oid funcid);
static bool failed;				/* LLVM can't be used in this session */

extern PGDLLEXPORT void mot_jit_provider_init(MotJitProvider *provider);

/* LLVM cannot go on (errors.cpp), and its state is unknown: so must we end. */
void
mot_jit_fatal(const char *reason, int out_of_memory)
{
	ereport(FATAL,
			(errcode(out_of_memory ? ERRCODE_OUT_OF_MEMORY : ERRCODE_INTERNAL_ERROR),
			 out_of_memory ? errmsg("out of memory") : errmsg("fatal error in LLVM"),
			 reason ? errdetail("While compiling a statement: %s.", reason) :
			 errdetail("Failed while compiling a statement.")));
}

/* ---------------------------------------------------------------- session */

static LLVMOrcObjectLayerRef
make_object_layer(void *arg, LLVMOrcExecutionSessionRef session, const char *triple)
{
	return LLVMOrcCreateRTDyldObjectLinkingLayerWithSectionMemoryManager(session);
}

/* what goes wrong is reported by the call that fails */
static void
ignore_report(void *arg, LLVMErrorRef error)
{
	LLVMConsumeError(error);
}

/*
 * LLVM's own threads and destructors are not waited for when the process
 * ends; if it ends from within LLVM, nothing of it may be called.
 *
 * Nothing says how far the pages of code and constants are from each other: with the server's
 * shared memory between them, it may be many GB.  So there must be no distances of 32 bits in an
 * object.  The default code model has none; in code that is independent of its position, jump
 * tables are made of such (and LLVM does not notice that they are too short).
 */
static LLVMTargetMachineRef
make_machine(void)
{
	char	   *triple = LLVMGetDefaultTargetTriple();
	char	   *cpu = LLVMGetHostCPUName();
	char	   *features = LLVMGetHostCPUFeatures();
	char	   *error = NULL;
	LLVMTargetRef target;
	LLVMTargetMachineRef result = NULL;

	if (LLVMGetTargetFromTriple(triple, &target, &error) == 0)
		result = LLVMCreateTargetMachine(target, triple, cpu, features,
										 MOT_CODEGEN_LEVEL, LLVMRelocStatic,
										 LLVMCodeModelJITDefault);

	LLVMDisposeMessage(triple);
	LLVMDisposeMessage(cpu);
	LLVMDisposeMessage(features);
	if (error)
		LLVMDisposeMessage(error);
	return result;
}

static bool
begin_session(void)
{
	LLVMOrcLLJITBuilderRef builder;
	LLVMOrcDefinitionGeneratorRef generator;
	LLVMTargetMachineRef template;
	LLVMErrorRef error;

	if (lljit != NULL)
		return true;

	/* idempotent: the server's JIT does the same */
	LLVMInitializeNativeTarget();
	LLVMInitializeNativeAsmPrinter();

	machine = make_machine();
	template = make_machine();
	if (machine == NULL || template == NULL)
		return false;

	builder = LLVMOrcCreateLLJITBuilder();
	LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(builder,
												  LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(template));
	LLVMOrcLLJITBuilderSetObjectLinkingLayerCreator(builder, make_object_layer, NULL);
	error = LLVMOrcCreateLLJIT(&lljit, builder);
	if (error)
	{
		LLVMConsumeError(error);
		lljit = NULL;
		return false;
	}
	LLVMOrcExecutionSessionSetErrorReporter(LLVMOrcLLJITGetExecutionSession(lljit),
											ignore_report, NULL);

	/* memcpy and the like, which LLVM calls of its own accord */
	error = LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(&generator,
																 LLVMOrcLLJITGetGlobalPrefix(lljit),
																 NULL, NULL);
	if (error)
	{
		LLVMConsumeError(error);
		LLVMConsumeError(LLVMOrcDisposeLLJIT(lljit));
		lljit = NULL;
		return false;
	}
	LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(lljit), generator);
	return true;
}

/* ---------------------------------------------------------------- compile */

/* An error of LLVM's as a reason to decline. */
static LLVMErrorRef
describe(LLVMErrorRef error, const char **why_not)
{
	if (error)
	{
		char	   *message = LLVMGetErrorMessage(error);

		*why_not = psprintf("LLVM: %s", message);
		LLVMDisposeErrorMessage(message);
	}
	return error;
}

/* The program as an object file, or NULL if it was declined. */
static LLVMMemoryBufferRef
build(MotEmit * emit, Code *code, const char *name, char **error)
{
	LLVMMemoryBufferRef object = NULL;

	if (sigsetjmp(emit->declined, 0) != 0)
		return NULL;

	emit->context = LLVMContextCreate();
	emit->module = LLVMModuleCreateWithNameInContext(name, emit->context);
	emit->builder = LLVMCreateBuilderInContext(emit->context);
	MotSetTarget(emit->module, machine);
	if (emit->procedure != NULL)
		MotEmitProcedure(emit, name);
	else
		MotEmitProgram(emit, name);
#ifdef USE_ASSERT_CHECKING
	if (LLVMVerifyModule(emit->module, LLVMReturnStatusAction, error))
		return NULL;
#endif
	MotOptimize(emit->module, machine);
	if (code->text == NULL && emit->request->statement != NULL)
	{
		char	   *text = LLVMPrintModuleToString(emit->module);

		code->text = MemoryContextStrdup(code->cxt, text);
		LLVMDisposeMessage(text);
	}
	if (LLVMTargetMachineEmitToMemoryBuffer(machine, emit->module, LLVMObjectFile, error, &object))
		return NULL;
	return object;
}

/* "procedure" or a row program */
static MotRowCode *
make(const MotRowRequest *request, MotProcedureRequest *procedure, const char **why_not)
{
	volatile	LLVMMemoryBufferRef object = NULL;
	MotEmit    *emit = palloc0(sizeof(MotEmit));
	char	   *llvm_error = NULL;
	LLVMErrorRef error;
	LLVMOrcExecutorAddress address;
	MemoryContext cxt;
	Code	   *code;
	char		name[32];
	instr_time	start;
	instr_time	end;

	*why_not = NULL;
	if (failed)
	{
		*why_not = "LLVM could not be started";
		return NULL;
	}

	INSTR_TIME_SET_CURRENT(start);
	cxt = AllocSetContextCreate(TopMemoryContext, "mot compiled program", ALLOCSET_SMALL_SIZES);
	code = MemoryContextAllocZero(cxt, sizeof(Code));
	code->cxt = cxt;
	emit->request = request;
	emit->procedure = procedure;
	emit->cxt = cxt;
	snprintf(name, sizeof(name), "%s_" UINT64_FORMAT, procedure ? "mot_procedure" : "mot_row", ++programs);

	mot_jit_enter();
	PG_TRY();
	{
		if (!begin_session())
		{
			failed = true;
			*why_not = "LLVM could not be started";
		}
		else
		{
			object = build(emit, code, name, &llvm_error);
			if (object == NULL)
				*why_not = emit->why_not ? emit->why_not : psprintf("LLVM: %s", llvm_error);
		}
	}
	PG_FINALLY();
	{
		if (llvm_error)
			LLVMDisposeMessage(llvm_error);
		if (emit->builder)
			LLVMDisposeBuilder(emit->builder);
		if (emit->module)
			LLVMDisposeModule(emit->module);
		if (emit->context)
			LLVMContextDispose(emit->context);
		if (object == NULL)
		{
			mot_jit_leave();
			MemoryContextDelete(cxt);
		}
	}
	PG_END_TRY();
	pfree(emit);
	if (object == NULL)
		return NULL;

	/*
	 * the sections of the object in pages of their own: code, constants,
	 * unwinding
	 */
	code->bytes = TYPEALIGN(4096, LLVMGetBufferSize(object)) + 2 * 4096 + MemoryContextMemAllocated(cxt, true);
	code->public.code_bytes = code->bytes;

	code->tracker = LLVMOrcJITDylibCreateResourceTracker(LLVMOrcLLJITGetMainJITDylib(lljit));
	error = LLVMOrcLLJITAddObjectFileWithRT(lljit, code->tracker, object);
	if (describe(error, why_not) == LLVMErrorSuccess)
		error = describe(LLVMOrcLLJITLookup(lljit, &address, name), why_not);
	if (error)
	{
		LLVMConsumeError(LLVMOrcResourceTrackerRemove(code->tracker));
		LLVMOrcReleaseResourceTracker(code->tracker);
		mot_jit_leave();
		MemoryContextDelete(cxt);
		return NULL;
	}
	mot_jit_leave();

	bytes_used += code->bytes;
	code->public.function = (MotRowFunction) (uintptr_t) address;
	code->public.private = code;
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	code->public.compile_ms = INSTR_TIME_GET_MILLISEC(end);
	return &code->public;
}

static MotRowCode *
compile(const MotRowRequest *request, const char **why_not)
{
	return make(request, NULL, why_not);
}

static MotRowCode *
compile_procedure(MotProcedureRequest *request, const char **why_not)
{
	/* expressions of no row */
	static const MotRowRequest nothing = {0};

	request->declined = -1;
	return make(&nothing, request, why_not);
}

static void
release(MotRowCode *public)
{
	Code	   *code = (Code *) public;

	/* the process's end frees everything; it may have come from within LLVM */
	if (proc_exit_inprogress)
		return;

	mot_jit_enter();
	LLVMConsumeError(LLVMOrcResourceTrackerRemove(code->tracker));
	LLVMOrcReleaseResourceTracker(code->tracker);
	/* names would stay otherwise */
	LLVMOrcSymbolStringPoolClearDeadEntries(LLVMOrcExecutionSessionGetSymbolStringPool(LLVMOrcLLJITGetExecutionSession(lljit)));
	mot_jit_leave();
	bytes_used -= code->bytes;
	MemoryContextDelete(code->cxt);
}

static size_t
bytes(void)
{
	return bytes_used;
}

static char *
dump(const MotRowCode *public)
{
	const Code *code = (const Code *) public;

	return code->text ? pstrdup(code->text) : NULL;
}

void
mot_jit_provider_init(MotJitProvider *provider)
{
	provider->compile = compile;
	provider->compile_procedure = compile_procedure;
	provider->release = release;
	provider->bytes = bytes;
	provider->dump = dump;
	MotSooner = provider->sooner;
}

//===- Meanings.h - what a word of another tool says here ------*- C++ -*-===//
#ifndef STAGE_LIB_SEMA_MEANINGS_H
#define STAGE_LIB_SEMA_MEANINGS_H

#include "stage/Sema/Program.h"
#include "stage/Support/Diagnostics.h"

namespace stage::sema {

/// The parameter that `name` means, by the flags and fields of the library and by the comments of the parameters; null:
/// none. `form`: what to write in place of `name = value`, where another name alone does not say it.
const ast::Param *findMeant(const Program &program, ArrayRef<ast::Param> params, StringRef name, StringRef value,
                            std::string &form);
/// The value of a job or step that `name` means, as `microbatch` or `B`; empty: none of `known`.
StringRef findMeant(const Program &program, ArrayRef<Candidate> known, StringRef name);
/// suggestNearest(), after the words of other tools.
void suggestMeant(DiagnosticBuilder &error, const Program &program, StringRef name, SMRange at,
                  ArrayRef<Candidate> candidates);

/// Adds to `error` which other strategy has the parameter `name` that the one with `params` lacks, and all those called
/// `others`; false: none.
bool suggestOwner(DiagnosticBuilder &error, const Program &program, ArrayRef<ast::Param> params, StringRef name,
                  ArrayRef<StringRef> others);
/// Adds to `error`, about an argument that a declaration lacks, what to write. `args` are the names of the others.
void explainArgument(DiagnosticBuilder &error, const Program *program, ArrayRef<ast::Param> params,
                     const ast::Ident &name, StringRef value, ArrayRef<StringRef> others, SMRange call = SMRange());
/// Adds to `error` how a parameter without a value is given in the call that `call` is the text of.
void explainMissing(DiagnosticBuilder &error, StringRef callee, StringRef call, const ast::Param &param,
                    bool isInSight = false);
/// The same for a model, which a config may give it: `missing` are all that lack a value.
void explainMissingSizes(DiagnosticBuilder &error, const Program &program, const ast::ModuleDecl &model, StringRef call,
                         const ast::ConfigDecl *config, ArrayRef<StringRef> missing);

/// What to write in place of an unknown entry of a job, machine, level, runtime, precision or optimizer; empty: no such
/// word. `owner`: "job".
StringRef findEntryHint(StringRef owner, StringRef name);

/// Whether a size of the model has this name: a parameter or a dim.
bool hasDim(const ast::ModuleDecl &model, StringRef name);

/// Program::suggestImport() of what begins with the word `kind`.
bool suggestImportOfKind(DiagnosticBuilder &error, const Program &program, StringRef name, StringRef kind);
/// Program::suggestImport(), unless `from` sees the name.
void suggestImportUnlessVisible(DiagnosticBuilder &error, const Program &program, StringRef name,
                                const ast::File &from);

/// The text of a range of a file, on one line.
std::string getText(SMRange range);

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_MEANINGS_H

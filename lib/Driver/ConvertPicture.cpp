//===- ConvertPicture.cpp - a picture as PDF ------------------------------===//
//
// rsvg-convert reads a file and writes one, in a folder of its own that is removed afterwards. PDF has a date of
// creation: cairo takes it from SOURCE_DATE_EPOCH, which is set to 0, because the same program must give the same bytes
// (law L11).
//
//===----------------------------------------------------------------------===//
#include "ConvertPicture.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/Support/Files.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include <cstdlib>

using namespace stage;
using namespace stage::driver;

std::optional<std::string> stage::driver::findConverter(DiagnosticEngine &diags) {
  llvm::ErrorOr<std::string> program = llvm::sys::findProgramByName("rsvg-convert");
  if (program)
    return *program;
  diags.report(SMLoc(), diag::NoPdfConverter);
  return std::nullopt;
}

std::optional<std::string> stage::driver::convertToPdf(llvm::StringRef svg, DiagnosticEngine &diags) {
  std::optional<std::string> program = findConverter(diags);
  if (!program)
    return std::nullopt;
  auto fail = [&](llvm::StringRef reason) {
    diags.report(SMLoc(), diag::CannotConvertPicture) << reason;
    return std::nullopt;
  };
  llvm::SmallString<128> folder;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("stagec", folder))
    return fail(error.message());
  std::string input = (folder + "/picture.svg").str(), output = (folder + "/picture.pdf").str();
  std::optional<std::string> pdf;
  std::string reason = "the folder of temporary files cannot be written";
  if (writePrivateFile(input, svg)) {
    reason.clear();
    setenv("SOURCE_DATE_EPOCH", "0", /*overwrite=*/1);
    llvm::StringRef arguments[] = {*program, "--format=pdf", "-o", output, input};
    constexpr unsigned maxSeconds = 120;
    int status = llvm::sys::ExecuteAndWait(*program, arguments, llvm::None, {}, maxSeconds, 0, &reason);
    if (status != 0 && reason.empty())
      reason = "it ended with status " + std::to_string(status);
    else if (std::unique_ptr<llvm::MemoryBuffer> file = readFile(output, reason); file && status == 0)
      pdf = file->getBuffer().str();
  }
  llvm::sys::fs::remove_directories(folder);
  if (!pdf)
    return fail(reason);
  return pdf;
}

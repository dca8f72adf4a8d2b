//===- Process.h - how a tool begins and ends ------------------*- C++ -*-===//
//
//   int main(int argc, char **argv) {
//     prepareProcess(/*failureCode=*/1);
//
// A closed standard stream is opened on /dev/null, so that no file of ours gets its
// number (standard output so that writing to it fails and is reported). What --help
// cannot write is reported; a standard error that cannot be written ends nothing. When
// memory is used up the tool says so, removes what it has half written, and ends.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SUPPORT_PROCESS_H
#define STAGE_SUPPORT_PROCESS_H

namespace stage {

/// Must be the first call of main(). `failureCode` is the exit code when output or memory is missing.
void prepareProcess(int failureCode);

/// Called, from any thread, when the process ends for lack of memory; null for nothing. It may use system calls only.
void setEmergencyCleanup(void (*cleanup)());

} // namespace stage

#endif // STAGE_SUPPORT_PROCESS_H

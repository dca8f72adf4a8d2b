//===- Driver.h - the phases of the compiler in order ----------*- C++ -*-===//
#ifndef STAGE_DRIVER_DRIVER_H
#define STAGE_DRIVER_DRIVER_H

namespace stage::driver {

/// The compiler as a command. The exit code: 0, or 1 after an error.
int stagecMain(int argc, char **argv);

} // namespace stage::driver

#endif // STAGE_DRIVER_DRIVER_H

//===- Installation.cpp - where this compiler is installed ----------------===//
#include "stage/Support/Installation.h"
#include "stage/Support/Config.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include <bit>
#include <link.h>

using namespace stage;

llvm::StringRef stage::getVersion() { return STAGE_VERSION; }

/// The note that the linker writes (`--build-id`): a hash of the executable.
static int findBuildId(dl_phdr_info *object, size_t, void *found) {
  for (const ElfW(Phdr) & part : llvm::ArrayRef(object->dlpi_phdr, object->dlpi_phnum)) {
    const char *note = std::bit_cast<const char *>(object->dlpi_addr + part.p_vaddr), *end = note + part.p_memsz;
    while (part.p_type == PT_NOTE && note < end) {
      auto *header = reinterpret_cast<const ElfW(Nhdr) *>(note);
      const char *name = note + sizeof *header, *text = name + llvm::alignTo(header->n_namesz, 4);
      if (header->n_type == NT_GNU_BUILD_ID && llvm::StringRef(name, header->n_namesz) == llvm::StringRef("GNU\0", 4))
        *static_cast<llvm::StringRef *>(found) = llvm::StringRef(text, header->n_descsz);
      note = text + llvm::alignTo(header->n_descsz, 4);
    }
  }
  return 1; // the first object is the executable, which holds all of the compiler
}

llvm::StringRef stage::getBuildId() {
  llvm::StringRef id;
  dl_iterate_phdr(findBuildId, &id);
  return id;
}

std::string stage::getStdlibFolder(const char *argv0) {
  // Any function of the executable will do to find it.
  void *here = reinterpret_cast<void *>(&getStdlibFolder);
  llvm::SmallString<256> folder(llvm::sys::path::parent_path(llvm::sys::fs::getMainExecutable(argv0, here)));
  llvm::sys::path::append(folder, STAGE_STDLIB_FROM_BINARY);
  llvm::sys::path::remove_dots(folder, /*remove_dot_dot=*/true);
  return folder.str().str();
}

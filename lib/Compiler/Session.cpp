//===- Session.cpp - a program that is compiled many times ----------------===//
//
// Problem: the plans of a table differ in a few values. All else, which takes most of the time of a single plan, is the
// same for all of them.
//
// Algorithm: files are read and their names checked once. Sizes and graphs of models are kept between plans. Each plan
// has a compilation and a list of messages of its own.
//
// Several threads take plans from one list. They share the syntax trees of the files, which nobody changes; each has
// sizes, models and texts of values of its own, in a session of its own.
//
//===----------------------------------------------------------------------===//
#include "stage/Compiler/Session.h"
#include "stage/AST/AST.h"
#include "stage/Compiler/PlanStores.h"
#include "stage/IRGen/ModelCache.h"
#include "stage/Sema/Program.h"
#include "stage/Support/Files.h"
#include "stage/Transforms/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <mutex>
#include <system_error>
#include <thread>

using namespace stage;

Plan &Plan::set(llvm::StringRef name, sema::OverrideValue value) {
  llvm::erase_if(values, [&](const sema::Override &given) { return given.name == name; });
  values.push_back({name.str(), std::move(value)});
  return *this;
}

Result::Result(Session &session, bool warningsAreErrors)
    : messages(std::make_unique<DiagnosticList>()),
      diags(std::make_unique<DiagnosticEngine>(session.getSources(), messages.get())),
      compilation(std::make_unique<Compilation>(session, *diags)) {
  diags->setWarningsAreErrors(warningsAreErrors);
}

Session::Session(SessionOptions options, DiagnosticConsumer *consumer)
    : options(std::move(options)), diags(sources, consumer), ast(std::make_unique<ast::ASTContext>()),
      models(std::make_unique<ModelCache>(differentiate)), stores(std::make_unique<PlanStores>()) {
  diags.setWarningsAreErrors(this->options.warningsAreErrors);
  diags.setLibrary(this->options.stdlibDir);
}

Session::Session(Session &loaded) : Session(loaded.options) {
  for (unsigned id = 1; id <= loaded.sources.getNumBuffers(); ++id)
    sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(*loaded.sources.getMemoryBuffer(id)), SMLoc());
  files = std::make_unique<sema::Program>(*loaded.files, *ast, diags);
  measured = loaded.measured;
}

Session::~Session() = default;

bool Session::load() {
  return load([&](sema::Program &read) { return read.load(options.input) != nullptr; });
}

bool Session::load(llvm::StringRef text, llvm::StringRef name) {
  unsigned id = sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, name), SMLoc());
  return load([&](sema::Program &read) { return read.loadBuffer(id, name) != nullptr; });
}

bool Session::load(llvm::function_ref<bool(sema::Program &)> read) {
  if (files)
    return true;
  auto program = std::make_unique<sema::Program>(
      *ast, diags, sema::ProgramOptions{options.stdlibDir, options.includeDirs, options.libraries, options.cache});
  // Every name is known before anything is evaluated.
  if (!read(*program) || diags.hasErrors() || !sema::checkNames(*program) || !readMeasured())
    return false;
  files = std::move(program);
  return true;
}

/// A library without the table is one of which nothing was measured. False after a report.
bool Session::readMeasured() {
  if (options.stdlibDir.empty())
    return true;
  llvm::SmallString<128> path(options.stdlibDir);
  llvm::sys::path::append(path, "tables", "measured.csv");
  std::string error;
  auto buffer = llvm::sys::fs::exists(path) ? readFile(path, error) : nullptr;
  if (!buffer)
    return true;
  measured = MeasuredSets::read(std::move(buffer), diags);
  return measured != nullptr;
}

std::vector<std::string> Session::listJobs() const {
  std::vector<std::string> names;
  for (const ast::JobDecl *job : sema::getJobs(*files))
    names.push_back(job->name.name.str());
  return names;
}

Result Session::compile(const Plan &plan) {
  Result result(*this, options.warningsAreErrors);
  Compilation &c = result.getCompilation();
  c.models = models.get();
  if (runFrontEnd(c, plan) && !refusePools(c, "comparing plans") && runMiddle(c))
    result.report = makeReport(c);
  return result;
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

/// A thread makes its first model by itself, which takes as long as a few plans.
static size_t chooseNumThreads(size_t count, unsigned wanted) {
  constexpr size_t plansPerThread = 6;
  if (wanted)
    return std::min<size_t>(wanted, count);
  return std::clamp<size_t>(count / plansPerThread, 1, std::max(1u, std::thread::hardware_concurrency()));
}

void Session::compileAll(size_t count, unsigned wanted, PlanGetter getPlan, ResultVisitor visit) {
  SessionThreads(*this, chooseNumThreads(count, wanted)).forEach(count, [&](Session &session, size_t number) {
    visit(number, session.compile(getPlan(number)));
  });
}

SessionThreads::SessionThreads(Session &session, unsigned threads) : session(session) {
  for (unsigned i = 1; i < threads; ++i) // they take the files before anyone adds to these
    others.emplace_back(new Session(session));
}

SessionThreads::~SessionThreads() = default;

void SessionThreads::forEach(size_t count, llvm::function_ref<void(Session &, size_t)> visit) {
  size_t numThreads = others.size() + 1, next = 0;
  std::mutex mutex; // of `next`
  // The next plans for a thread: several in a row, as those are the likeliest to have one model, and fewer towards the
  // end, so that all threads end at one time.
  auto takePlans = [&] {
    std::lock_guard<std::mutex> lock(mutex);
    size_t begin = next, left = count - begin;
    next += std::min(left, std::max<size_t>(1, left / (4 * numThreads)));
    return std::pair(begin, next);
  };
  auto visitPlans = [&](Session &own) {
    for (auto [begin, end] = takePlans(); begin != end; std::tie(begin, end) = takePlans())
      for (size_t number = begin; number < end; ++number)
        visit(own, number);
  };
  std::vector<std::thread> threads;
  try {
    for (std::unique_ptr<Session> &other : others)
      threads.emplace_back([&visitPlans, &other] { visitPlans(*other); });
  } catch (const std::system_error &) {
    // A limit of the system: those that did start take the plans of the others.
  }
  visitPlans(session);
  for (std::thread &thread : threads)
    thread.join();
}

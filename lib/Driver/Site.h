//===- Site.h - the pages of a site, and where their links lead -*- C++ -*-===//
#ifndef STAGE_LIB_DRIVER_SITE_H
#define STAGE_LIB_DRIVER_SITE_H

#include "DocPages.h"
#include "SitePage.h"
#include <map>
#include <memory>
#include <optional>

namespace stage::driver {

struct SiteFile {
  std::string place;  ///< From the folder that holds docs/: `docs/language/Ops.md`.
  std::string output; ///< In the site: `language/Ops.html`.
  std::unique_ptr<SitePage> content;
  llvm::StringRef text; ///< Of the page as it was read.
  llvm::StringRef part; ///< Of the navigation; empty for a page that is in none.
};

/// From a file of the site to another: `../library/nn.html`.
std::string makeRelative(llvm::StringRef from, llvm::StringRef to);

class Site {
public:
  /// `docs`: the folder of the documentation.
  Site(std::string docs, DiagnosticEngine &diags) : folder(std::move(docs)), diags(diags) {}

  /// Reads all pages, and those to which they link; puts the places of the site into links. `library`: the pages of
  /// docs/library. False after errors.
  bool read(llvm::ArrayRef<DocPage> library);

  /// By place.
  const std::map<std::string, SiteFile> &getPages() const { return pages; }
  /// Those of the navigation, part by part.
  llvm::ArrayRef<const SiteFile *> getOrder() const { return order; }
  /// Files that pages show or link to as they are: where they lie, by their place in the site.
  const std::map<std::string, std::string> &getCopies() const { return copies; }

private:
  /// Where a link leads: to a page, or to a file that is copied.
  struct Target {
    SiteFile *page;
    std::string output, anchor;
  };

  bool readPages(llvm::ArrayRef<DocPage> library);
  bool checkLinks();
  void arrange();
  void addPage(const std::string &place, std::unique_ptr<llvm::MemoryBuffer> buffer);
  bool addSource(const std::string &place);
  std::optional<Target> findTarget(const SiteFile &page, llvm::StringRef link);
  void report(const SiteFile &page, const SiteLink &link, const std::optional<Target> &target);
  std::string getPath(llvm::StringRef place) const { return root + "/" + place.str(); }

  std::string folder;
  DiagnosticEngine &diags;
  std::string root, docs; ///< The folder that holds the documentation, and the name of the latter in it.
  std::map<std::string, SiteFile> pages;
  std::vector<const SiteFile *> order;
  std::map<std::string, std::string> copies;
};

} // namespace stage::driver

#endif // STAGE_LIB_DRIVER_SITE_H

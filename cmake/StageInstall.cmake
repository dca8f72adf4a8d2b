# Where an installed compiler finds what is not in its binary, and what `cmake --install` copies.
#
# Tools look for the standard library relative to themselves, so an installed prefix can be moved and
# no path of the machine that built it is in a binary. The build tree has the same shape: its
# share/stagec/stdlib is a link to the sources, so an edited library is seen without a build.
set(STAGE_INSTALL_DATADIR ${CMAKE_INSTALL_DATADIR}/stagec)
file(RELATIVE_PATH STAGE_STDLIB_FROM_BINARY
  ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_DATADIR}/stagec/stdlib)
configure_file(${CMAKE_SOURCE_DIR}/include/stage/Support/Config.h.in
  ${CMAKE_BINARY_DIR}/include/stage/Support/Config.h @ONLY)

get_filename_component(stdlib_link ${CMAKE_BINARY_DIR}/bin/${STAGE_STDLIB_FROM_BINARY} ABSOLUTE)
get_filename_component(stdlib_parent ${stdlib_link} DIRECTORY)
file(MAKE_DIRECTORY ${stdlib_parent})
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/stdlib ${stdlib_link} SYMBOLIC)
# What --explain prints of, and the pages of a site (stagec doc --html).
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/docs ${stdlib_parent}/docs SYMBOLIC)

# The compiler as a library (cmake/stagecConfig.cmake), with what lies below it. stage_library() exports each target.
set(STAGE_INSTALL_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/stagec)
install(DIRECTORY include/stage ${CMAKE_BINARY_DIR}/include/stage DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "*.inc" PATTERN "Driver" EXCLUDE)
install(FILES cmake/stagecConfig.cmake DESTINATION ${STAGE_INSTALL_CMAKEDIR})
install(EXPORT stagecTargets NAMESPACE stagec:: DESTINATION ${STAGE_INSTALL_CMAKEDIR})

# OPTIONAL: a checkout may lack a folder while the project grows.
install(DIRECTORY stdlib examples DESTINATION ${STAGE_INSTALL_DATADIR} OPTIONAL FILES_MATCHING PATTERN "*.stg" PATTERN "*.json" PATTERN "*.jsonl" PATTERN "*.csv" PATTERN "*.py" PATTERN "*.cpp" PATTERN "CMakeLists.txt")
# Pages link to each other, to the library, to examples, and to files of the project: these lie as in a checkout, because
# a link that leads nowhere is an error of `stagec doc --html`.
install(DIRECTORY docs DESTINATION ${STAGE_INSTALL_DATADIR})
install(DIRECTORY test/Interp/known-bugs DESTINATION ${STAGE_INSTALL_DATADIR}/test/Interp FILES_MATCHING PATTERN "*.sir")
set(project_files README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md CITATION.cff LICENSE THIRD_PARTY_NOTICES)
install(FILES ${project_files} DESTINATION ${STAGE_INSTALL_DATADIR})
install(FILES utils/fuzz/README.md DESTINATION ${STAGE_INSTALL_DATADIR}/utils/fuzz)
# The licenses of what is linked statically demand that binaries come with these two, where people look for them.
install(FILES LICENSE THIRD_PARTY_NOTICES DESTINATION ${CMAKE_INSTALL_DOCDIR})

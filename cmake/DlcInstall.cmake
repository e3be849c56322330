# What `cmake --install` puts where, for users of dlc and for authors of plugins:
#   bin/dlc, lib/dlc/plugins, share/dlc/hwdesc      (by the targets themselves)
#   include/dlc, lib/libdlc_sdk.a, lib/cmake/dlc    the SDK: find_package(dlc), dlc::sdk, dlc::hw, dlc_add_plugin()
set(parts dlc_base dlc_expr dlc_kernel dlc_ops dlc_interp dlc_graph dlc_passes dlc_program dlc_hw dlc_sdk)
set(objects "")
foreach(part ${parts})
  list(APPEND objects "$<TARGET_OBJECTS:${part}>")
endforeach()
# One archive: a plugin takes from it what it uses.
add_library(dlc_sdk_archive STATIC ${objects})
set_target_properties(dlc_sdk_archive PROPERTIES OUTPUT_NAME dlc_sdk LINKER_LANGUAGE CXX
                      ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
install(TARGETS dlc_sdk_archive ARCHIVE DESTINATION lib)

# The host's side is no part of the SDK.
install(DIRECTORY "${CMAKE_SOURCE_DIR}/core/include/dlc" DESTINATION include
        PATTERN "host.h" EXCLUDE PATTERN "compiled.h" EXCLUDE PATTERN "io" EXCLUDE)

include(CMakePackageConfigHelpers)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/dlcConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_SOURCE_DIR}/cmake/dlcConfig.cmake" "${CMAKE_BINARY_DIR}/dlcConfigVersion.cmake"
              "${CMAKE_SOURCE_DIR}/cmake/DlcAddPlugin.cmake" "${CMAKE_SOURCE_DIR}/cmake/plugin.map"
        DESTINATION lib/cmake/dlc)

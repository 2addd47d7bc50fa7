# What `make install` puts where: the program, both libraries, the headers, the models, the manual, and what finds the
# library: a pkg-config file and a CMake package. Everything finds its parts beside itself, so a tree can be moved.
include(CMakePackageConfigHelpers)

# The build folder has a share/ laid out as the installed one, where programs of the build find the models.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/tessera)
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/models ${CMAKE_BINARY_DIR}/share/tessera/models SYMBOLIC)

install(TARGETS tessera RUNTIME)
install(TARGETS tessera_core ARCHIVE)
install(TARGETS tessera_shared LIBRARY)
if(TARGET tessera_mpi)
  install(TARGETS tessera_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tessera COMPONENT mpi)
endif()
install(FILES include/tessera.h include/tessera_images.h include/tessera_study.h include/tessera_fill.h include/tessera_detect.h include/tessera_train.h include/tessera_ranks.h include/tessera_trace.h include/tessera_report.h TYPE INCLUDE)
file(GLOB MODEL_FILES CONFIGURE_DEPENDS models/*.safetensors models/*.md)
install(FILES ${MODEL_FILES} DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera/models)
install(FILES LICENSE README.md CHANGELOG.md TYPE DOC)
install(DIRECTORY docs examples TYPE DOC)
if(NOT CMAKE_CROSSCOMPILING)
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${bash} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${zsh} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()

# What a program needs besides libtessera.a.
set(TESSERA_STATIC_LIBS "-lm -ldl -lpthread")
if(TESSERA_HAS_CUDA)
  set(TESSERA_STATIC_LIBS "-Wl,-u,tess_cuda_driver -Wl,-u,tess_cuda_hopper -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt -lstdc++ ${TESSERA_STATIC_LIBS}")
endif()
set(TESSERA_STATIC_REQUIRES "jansson libpng zlib fftw3f")
if(YAML_FOUND)
  string(APPEND TESSERA_STATIC_REQUIRES " yaml-0.1")
endif()
# From the folder of the file to the prefix, whatever the depth of the library folder.
file(RELATIVE_PATH TESSERA_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" TESSERA_PC_PREFIX "${TESSERA_PC_PREFIX}")
configure_file(cmake/tessera.pc.in tessera.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tessera.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)
configure_package_config_file(cmake/tesseraConfig.cmake.in tesseraConfig.cmake INSTALL_DESTINATION ${package}
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(tesseraConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tesseraConfig.cmake ${CMAKE_BINARY_DIR}/tesseraConfigVersion.cmake DESTINATION ${package})

# A Debian package. GDAL, cuDNN and cuFFT are opened at run time, so nothing links to them.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tessera)
set(CPACK_PACKAGE_VENDOR Tessera)
set(CPACK_PACKAGE_CONTACT "Tessera maintainers <maintainers@tessera.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "restores large images within a memory limit
Denoises images and volumes of any size with deep networks, and reconstructs
blurred photographs and tomographic scans with them, on CPUs and NVIDIA cards.
The package has the program, the C library with its headers, and small models.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION graphics)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gdal-bin, libmicrohttpd12 | libmicrohttpd12t64")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libcudnn9-cuda-13 | libcudnn9-cuda-12 | nvidia-cudnn, libcufft-13-0 | libcufft-12-4")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
# The MPI module is a package of its own, so that the program's does not depend on an MPI library.
if(TARGET tessera_mpi)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENTS_ALL Unspecified mpi)
  set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME tessera)
  set(CPACK_DEBIAN_MPI_PACKAGE_NAME tessera-mpi)
  set(CPACK_COMPONENT_MPI_DESCRIPTION "lets tessera run as several ranks with MPI")
  set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "tessera (= ${PROJECT_VERSION})")
  set(CPACK_DEBIAN_MPI_PACKAGE_RECOMMENDS openmpi-bin)
  set(CPACK_DEBIAN_MPI_PACKAGE_SUGGESTS "")
  set(CPACK_DEBIAN_MPI_PACKAGE_GENERATE_SHLIBS OFF)
endif()
include(CPack)

# Manual pages and completions, printed by the program itself: share/ in the build folder is laid out as it is installed.
# A program for another machine cannot run here.
if(NOT CMAKE_CROSSCOMPILING)
  set(share ${CMAKE_BINARY_DIR}/share)
  set(man ${share}/man/man1)
  set(bash ${share}/bash-completion/completions/tessera)
  set(zsh ${share}/zsh/site-functions/_tessera)
  # The sanitizers' search for leaks does not work under every builder.
  set(print ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 $<TARGET_FILE:tessera> help)
  set(pages ${man}/tessera.1)
  set(commands COMMAND ${print} --man > ${man}/tessera.1)
  foreach(verb denoise reconstruct fill detect train plan bench report convert info top help)
    list(APPEND pages ${man}/tessera-${verb}.1)
    list(APPEND commands COMMAND ${print} --man ${verb} > ${man}/tessera-${verb}.1)
  endforeach()
  add_custom_command(
    OUTPUT ${pages} ${bash} ${zsh}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${man} ${share}/bash-completion/completions ${share}/zsh/site-functions
    ${commands}
    COMMAND ${print} --completion bash > ${bash}
    COMMAND ${print} --completion zsh > ${zsh}
    DEPENDS tessera
    COMMENT "Manual pages and completions"
    VERBATIM)
  add_custom_target(manual ALL DEPENDS ${pages} ${bash} ${zsh})
endif()

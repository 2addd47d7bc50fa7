# What the Python wheel holds besides python/tessera: the library and its models, laid out as an installed tree, so that the
# one finds the others. Only scikit-build-core (pyproject.toml) asks for it. The name has no version: wheels hold no links.
if(SKBUILD)
  set_property(TARGET tessera_shared PROPERTY VERSION)
  set_property(TARGET tessera_shared PROPERTY SOVERSION)
  install(TARGETS tessera_shared LIBRARY DESTINATION lib COMPONENT python)
  file(GLOB WHEEL_MODELS CONFIGURE_DEPENDS models/*.safetensors models/*.md)
  install(FILES ${WHEEL_MODELS} DESTINATION share/tessera/models COMPONENT python)
endif()

#compdef servetop

_servetop_completion() {
  eval $(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _SERVETOP_COMPLETE=complete_zsh servetop)
}

compdef _servetop_completion servetop

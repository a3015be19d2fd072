SELECT count(*) FROM public /* here */ . -- and here
 transactions t
